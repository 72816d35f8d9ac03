import { draw } from "./dom.js";
import { brief, count, many } from "./format.js";

const height = 240, left = 44, right = 4, top = 4, bottom = 22;

// icicle draws a picture of an engine's cache into a place: prompts lie one above the other and begin at the left, so that
// a block is as wide as its tokens, as high as the number of prompts that begin with all up to it, and its area is the
// tokens that were sent of it. announce is called with the words for a block that has the focus or the pointer.
//
// It is a tree for the keyboard and for those who listen: up and down go through all blocks, right to the first one
// behind, left to the one in front. What has the focus keeps it when the picture changes.
export function icicle(place, picture, announce) {
  const parts = picture?.parts ?? [];
  if (place.clientWidth === 0 && parts.length > 0) return; // not in view; drawn when it is
  const width = Math.max(place.clientWidth, 240);
  const key = JSON.stringify([width, picture?.seen, parts]);
  if (drawn.get(place)?.key === key) return;
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.path : null;
  if (!drawn.has(place)) listen(place);
  if (parts.length === 0) {
    drawn.set(place, { key, tree: [], items: [] });
    place.replaceChildren();
    announce("");
    return;
  }
  const tree = arrange(parts);
  const most = Math.max(...parts.map((p) => p.end), 1), rows = Math.max(picture.seen, 1);
  const x = (tokens) => left + (tokens / most) * (width - left - right);
  const y = (requests) => top + (requests / rows) * (height - top - bottom);
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "tree", "aria-label": describe(picture) });
  for (const share of [0, 0.5, 1]) {
    svg.append(draw("text", { "aria-hidden": "true", x: x(share * most), y: height - 6, "text-anchor": share === 1 ? "end" : "middle" }, share === 1 ? `${brief(most)} tokens` : brief(share * most)));
    svg.append(draw("text", { "aria-hidden": "true", x: left - 6, y: y(share * rows) + (share === 0 ? 10 : share === 1 ? 0 : 4), "text-anchor": "end" }, count(Math.round(share * rows))));
  }
  const items = tree.map((n) => {
    const p = n.part;
    return draw("rect", {
      role: "treeitem", tabindex: "-1", "aria-level": n.level, "aria-posinset": n.place, "aria-setsize": n.of, "aria-label": words(p, picture.seen),
      "data-path": n.path, class: `${p.requests > 1 ? "shared" : "alone"} ${n.level % 2 ? "odd" : "even"}`,
      x: x(p.end - p.tokens).toFixed(2), y: y(n.from).toFixed(2),
      width: Math.max(x(p.end) - x(p.end - p.tokens), 0.5).toFixed(2), height: Math.max(y(n.from + p.requests) - y(n.from), 0.5).toFixed(2),
    });
  });
  svg.append(...items);
  place.replaceChildren(svg);
  drawn.set(place, { key, tree, items, announce: (i) => announce(words(parts[i], picture.seen)) });
  const at = focused === null ? -1 : closest(tree, focused);
  items[Math.max(at, 0)].setAttribute("tabindex", "0");
  if (at >= 0) items[at].focus({ preventScroll: true });
  else announce("");
}

// arrange finds for each part its level, its place among its siblings and its first row.
function arrange(parts) {
  const siblings = new Map(); // by parent
  parts.forEach((p, i) => siblings.set(p.parent, [...(siblings.get(p.parent) ?? []), i]));
  const tree = [];
  parts.forEach((part, i) => {
    const parent = part.parent < 0 ? { level: 0, from: 0, path: "" } : tree[part.parent];
    const all = siblings.get(part.parent), place = all.indexOf(i);
    tree.push({
      part, level: parent.level + 1, place: place + 1, of: all.length, path: `${parent.path}/${part.name}`, children: siblings.get(i) ?? [],
      from: parent.from + all.slice(0, place).reduce((sum, k) => sum + parts[k].requests, 0),
    });
  });
  return tree;
}

// drawn remembers what stands in a place. Its listeners are the place's: Chromium lets an SVG picture that listens to the
// focus have it, too.
const drawn = new WeakMap();

function listen(place) {
  const state = (event) => {
    const { tree, items, announce } = drawn.get(place);
    return { tree, items, announce, i: items.indexOf(event.target) };
  };
  const go = (items, i) => {
    if (i === undefined || i < 0 || i >= items.length) return;
    for (const item of items) item.setAttribute("tabindex", "-1");
    items[i].setAttribute("tabindex", "0");
    items[i].focus();
  };
  place.addEventListener("keydown", (event) => {
    const { tree, items, i } = state(event);
    const to = { ArrowDown: i + 1, ArrowUp: i - 1, ArrowRight: tree[i]?.children[0], ArrowLeft: tree[i]?.part.parent, Home: 0, End: items.length - 1 };
    if (i < 0 || !(event.key in to) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    go(items, to[event.key]);
  });
  for (const name of ["focusin", "pointerover", "click"]) {
    place.addEventListener(name, (event) => {
      const { items, announce, i } = state(event);
      if (i < 0) return;
      if (name === "click") go(items, i);
      else announce(i);
    });
  }
}

// closest finds the block with a path, or the last one in front of it that is still there.
function closest(tree, path) {
  for (let p = path; p !== ""; p = p.slice(0, p.lastIndexOf("/"))) {
    const i = tree.findIndex((n) => n.path === p);
    if (i >= 0) return i;
  }
  return 0;
}

const words = (p, seen) => `Block ${p.name}: ${many(p.tokens, "token")}, up to token ${count(p.end)}; ${count(p.requests)} of ${many(seen, "prompt")} begin so`;

function describe(picture) {
  const shared = picture.parts.filter((p) => p.requests > 1);
  const best = shared.reduce((a, b) => (b.end * b.requests > (a ? a.end * a.requests : 0) ? b : a), null);
  return `Blocks that prompts begin with, as a tree of ${picture.parts.length}. ` +
    (best ? `The largest shared beginning: ${count(best.end)} tokens, in ${count(best.requests)} of ${many(picture.seen, "prompt")}` : "No two prompts share a beginning");
}
