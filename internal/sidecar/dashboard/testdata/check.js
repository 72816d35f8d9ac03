// check returns what a person could not see, reach or hear in the page as it is now, one line each.
(() => {
  const found = [];
  const all = (selector) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility());
  const name = (e) => `${e.tagName.toLowerCase()}${e.id ? "#" + e.id : ""} "${e.textContent.trim().slice(0, 40)}"`;
  const must = (holds, what, e) => { if (!holds) found.push(e ? `${what}: ${name(e)}` : what); };
  const label = (e) => e.getAttribute("aria-label") || (e.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent).join("") || "";

  must(document.documentElement.lang, "no language");
  must(document.title, "no title");
  must(document.querySelectorAll("h1").length === 1, "not one h1");
  for (const landmark of ["header", "main", "footer"]) must(all(`body > ${landmark}`).length === 1, `not one ${landmark}`);
  let level = 1;
  for (const h of all("h1, h2, h3, h4, h5, h6")) {
    must(h.tagName[1] - level <= 1, "heading skips a level", h);
    must(h.textContent.trim(), "empty heading", h);
    level = +h.tagName[1];
  }
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  must(new Set(ids).size === ids.length, "an ID twice");
  for (const e of document.querySelectorAll("[aria-labelledby]")) for (const id of e.getAttribute("aria-labelledby").split(" ")) must(document.getElementById(id) || e.hidden, `label ${id} is missing`, e);
  for (const e of all("img, svg")) must(e.getAttribute("aria-hidden") === "true" || (["img", "tree"].includes(e.getAttribute("role")) && label(e)) || e.alt, "picture without a name", e);
  for (const e of all("[role=tree]")) must(e.querySelectorAll("[role=treeitem][tabindex='0']").length === 1, "not one way into the tree", e);
  for (const e of all("[role=treeitem]")) must(label(e) && e.closest("[role=tree]") && ["level", "posinset", "setsize"].every((name) => e.getAttribute("aria-" + name) > 0), "treeitem without name or place", e);
  for (const e of all("input, select, textarea")) must(e.labels.length || label(e), "control without a label", e);
  for (const e of all("a, button, summary")) must(e.textContent.trim() || label(e), "nameless control", e);
  for (const e of all("section, [role=region]")) must(label(e), "region without a name", e);
  for (const e of all("th")) must(e.scope && (e.textContent.trim() || e.querySelector("a")), "header without scope or text", e);
  for (const e of all("table")) must(e.querySelector("thead th") && [...e.tBodies[0].rows].every((r) => r.cells[0].tagName === "TH" && r.cells.length === e.tHead.rows[0].cells.length), "table without headers", e);
  for (const e of all("[tabindex]")) must(e.tabIndex <= 0, "tab order of its own", e);
  for (const e of all("button, summary")) must(e.getBoundingClientRect().height >= 19, "small target", e);
  must(document.querySelectorAll("[aria-live=polite]").length === 1, "not one live region");
  must(document.getAnimations().length === 0, "something moves");
  must(document.documentElement.scrollWidth <= innerWidth, `page is ${document.documentElement.scrollWidth} wide in ${innerWidth}`);
  for (const e of all("body *:not(svg, svg *)")) {
    const style = getComputedStyle(e);
    if (style.overflowX === "visible" && style.display !== "inline" && !e.closest(".scroll, .unseen, .skip")) must(e.scrollWidth <= e.clientWidth + 1, "sticks out", e);
  }

  const rgba = (text) => { const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number); return [r, g, b, a]; };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const ground = (e) => {
    const below = e.parentElement ? ground(e.parentElement) : [255, 255, 255, 1];
    return e instanceof SVGElement ? below : over(rgba(getComputedStyle(e).backgroundColor), below);
  };
  const light = (c) => { const [r, g, b] = c.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  for (const e of all("body *")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || e.tagName === "title" || e.closest(".unseen")) continue;
    const style = getComputedStyle(e), below = ground(e);
    const [low, high] = [light(over(rgba(e instanceof SVGElement ? style.fill : style.color), below)), light(below)].sort((a, b) => a - b);
    const contrast = (high + 0.05) / (low + 0.05);
    must(contrast >= 4.5, `contrast ${contrast.toFixed(2)}`, e);
  }
  return found;
})()
