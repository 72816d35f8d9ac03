import { at, cells, make, row, rows, say } from "./dom.js";
import { chart } from "./chart.js";
import { icicle } from "./icicle.js";
import { brief, count, hitRatio, many, percent, time } from "./format.js";

let chosen = null; // ID of the engine that is looked at
let last = null; // its picture
let interval = 10;

// engines lists the engines' caches, and shows the one that was chosen; at first the one with the most prompts.
export function engines(data) {
  const list = data.engines ?? [];
  interval = data.interval_s;
  at("engines-known").hidden = list.length === 0;
  at("no-engines").hidden = list.length > 0;
  at("engines-shadow").hidden = !data.shadow;
  if (!list.some((e) => e.id === chosen)) {
    chosen = list.length ? list.reduce((a, b) => (b.live > a.live ? b : a)).id : null;
    show(null);
  }
  rows(at("engines"), list, (e) => e.id, engineRow, (tr, e) => {
    const button = tr.cells[0].firstElementChild;
    say(button, e.name);
    button.setAttribute("aria-pressed", e.id === chosen);
    ["", e.tenant || "(no name)", count(e.live), brief(e.tokens), e.hit_ratio === null ? "–" : percent(e.hit_ratio)]
      .forEach((text, i) => i > 0 && say(tr.cells[i], text));
  });
  const e = list.find((one) => one.id === chosen);
  say(at("engine-facts"), e ? `${e.name}, prompts that begin with the text ${e.front}: ${many(e.live, "live prompt")}, ` +
    `${count(e.tokens)} tokens, capacity ${e.capacity === null ? "not known" : `${count(e.capacity)} tokens`}.` : "");
}

function engineRow(e) {
  const tr = row("", "number", "number", "number");
  tr.cells[0].append(make("button", { type: "button" }, e.name));
  tr.cells[0].firstElementChild.addEventListener("click", () => {
    chosen = e.id;
    for (const b of at("engines").querySelectorAll("button")) b.setAttribute("aria-pressed", b.closest("tr").dataset.key === chosen);
    refresh();
  });
  return tr;
}

let ask = null; // how an engine's picture is got

// picture gets what the chosen engine holds and draws it. get is asked for the path of a picture. A picture in place of another is not
// drawn if the page was stopped meanwhile: what has the focus would be another element.
export function picture(get, stopped) {
  ask = get;
  return refresh(stopped);
}

async function refresh(stopped = () => false) {
  const id = chosen;
  if (id === null || !ask) return;
  const found = await ask(`engines/${encodeURIComponent(id)}.json`).catch(() => undefined);
  if (id === chosen && found !== undefined && !(last && stopped())) show(found);
}

function show(p) {
  last = p;
  const parts = p?.parts ?? [];
  icicle(at("picture"), p, (text) => say(at("part"), text));
  say(at("picture-caption"), parts.length === 0 ? "No prompt is live in this cache."
    : `Each area is a block: as wide as its tokens, as high as the number of prompts that begin so. ${parts.length === p.blocks ? "All" : "The largest"} ` +
      `${count(parts.length)} of ${many(p.blocks, "block")} of the ${p.seen === p.live ? "" : "latest "}${many(p.seen, "live prompt")}.`);
  rows(at("parts"), parts.map((part, i) => ({ ...part, i })), (part) => `${part.i} ${part.name}`, () => row("", "number", "number", "number"), (tr, part) => {
    cells(tr, [part.name, part.parent < 0 ? "the beginning" : parts[part.parent].name, count(part.tokens), count(part.end), count(part.requests)]);
  });
  redraw();
  samples(at("engine-samples"), p?.samples ?? []);
}

function redraw() {
  const place = at("engine-chart");
  if (place.clientWidth > 0) chart(place, last?.samples ?? [], null, interval);
  if (at("picture").clientWidth > 0) icicle(at("picture"), last, (text) => say(at("part"), text));
}

new ResizeObserver(redraw).observe(at("engine-chart"));

// samples are the rows of a chart's table, newest first.
export function samples(body, list) {
  rows(body, list.toReversed(), (s) => s.at, () => row("number", "number", "number", "number"), (tr, s) => {
    const reported = s.prompt_tokens > 0;
    cells(tr, [time(s.at), percent(hitRatio(s)), count(reported ? s.prompt_tokens : null), count(reported ? s.cached_tokens : null), count(s.requests)]);
  });
}
