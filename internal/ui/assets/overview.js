import { at, cells, make, rows, say } from "./dom.js";
import { bar, chart, swatch } from "./chart.js";
import { brief, count, day, done, hitRatio, many, money, percent, seconds, time } from "./format.js";

let shown = 20; // requests
let last = null;

export function overview(data) {
  if (last?.since !== data.since) at("requests").replaceChildren(); // another run of the server
  last = data;
  hits(data);
  saved(data);
  requests(data);
  engines(data.engines ?? []);
  sessions(data.sessions ?? []);
}

at("more").addEventListener("click", () => {
  shown += 40;
  requests(last);
});

new ResizeObserver(() => last && redraw(last)).observe(at("chart"));

function redraw(data) {
  const place = at("chart");
  if (place.clientWidth > 0) chart(place, data.samples ?? [], data.totals.held_out_hit_ratio, data.interval_s);
}

function hits(data) {
  const { totals } = data;
  const samples = data.samples ?? [];
  say(at("scope"), `${many(totals.requests, "request")} since ${day(data.since)}`);
  say(at("hit-ratio"), totals.hit_ratio === null ? "–" : percent(totals.hit_ratio));
  say(at("hit-tokens"), totals.hit_ratio === null
    ? "No answer has named its cached tokens yet."
    : `${brief(totals.cached_tokens)} of ${brief(totals.prompt_tokens)} prompt tokens came from the engine’s cache.`);
  say(at("hit-held-out"), totals.held_out_hit_ratio === null
    ? "No session was held out to compare with."
    : `Sent as they came: ${percent(totals.held_out_hit_ratio)}, in ${many(totals.held_out, "held-out request")}.`);
  redraw(data);
  say(at("chart-caption"), samples.length ? `Hit ratio, each point ${seconds(data.interval_s)} of requests` : "Points appear as requests end.");
  rows(at("samples"), samples.toReversed(), (s) => s.at, () => row("number", "number", "number", "number"), (tr, s) => {
    const reported = s.prompt_tokens > 0;
    cells(tr, [time(s.at), percent(hitRatio(s)), count(reported ? s.prompt_tokens : null), count(reported ? s.cached_tokens : null), count(s.requests)]);
  });
}

function saved(data) {
  const { tokens, seconds: waited, money: paid } = data.saved;
  saving("saved-tokens", tokens, brief);
  saving("saved-seconds", waited, seconds);
  saving("saved-money", paid, (v) => money(v, paid.currency));
  const t = data.totals.ttft;
  tile("ttft-p50", t && seconds(t.p50_s), t ? `of the last ${many(t.count, "request")}` : "no answer has begun yet");
  tile("ttft-p95", t && seconds(t.p95_s), t ? "1 in 20 took longer" : "no answer has begun yet");
}

// saving shows a mean with its interval, and the sum that follows from it; an interval around 0 is named as what it is.
function saving(id, s, write) {
  if (s.per_request === null) return tile(id, null, s.why ?? "");
  const parts = [];
  if (s.low !== null && s.high !== null) {
    parts.push(`95 %: ${write(s.low)} to ${write(s.high)}${s.low <= 0 && s.high >= 0 ? ", may be chance" : ""}`);
  } else parts.push("no interval");
  if (s.requests > 0) parts.push(`about ${write(s.per_request * s.requests)} in ${many(s.requests, "request")}`);
  tile(id, write(s.per_request), parts.join("\n"));
}

function tile(id, value, note) {
  const [, figure, text] = at(id).children;
  figure.classList.toggle("missing", value === null);
  say(figure, value ?? "not measured");
  say(text, note);
}

function requests(data) {
  const all = data.requests ?? [];
  const list = all.slice(0, shown);
  at("no-requests").hidden = all.length > 0;
  at("more").hidden = all.length <= shown;
  rows(at("requests"), list, (r) => r.id, requestRow, () => {}); // a request that has ended does not change
}

function requestRow(r) {
  const tr = row("id", "", "number", "number hit", "number");
  cells(tr, [time(r.at), "", done(r), count(r.prompt_tokens), "", seconds(r.ttft_s)]);
  tr.cells[1].append(make("a", { href: `#/requests/${encodeURIComponent(r.id)}` }, r.id));
  const ratio = r.prompt_tokens === null || r.cached_tokens === null ? null : hitRatio(r);
  tr.cells[4].append(...(ratio === null ? [percent(null)] : [bar(1, [ratio]), make("span", null, percent(ratio))]));
  return tr;
}

function engines(list) {
  at("no-engines").hidden = list.length > 0;
  rows(at("engines"), list, (e) => e.name, engineCard, (card, e) => {
    const [, picture, facts, table] = card.children;
    const named = e.prefixes ?? [], sum = named.reduce((all, p) => all + p.tokens, 0);
    const prefixes = e.tokens > sum ? [...named, { name: "others", tokens: e.tokens - sum, live: null }] : named;
    const whole = e.capacity ?? Math.max(e.tokens ?? 0, sum);
    const drawn = JSON.stringify([whole, prefixes]);
    if (picture.dataset.drawn !== drawn) {
      picture.replaceChildren(bar(whole, prefixes.map((p) => p.tokens)));
      picture.dataset.drawn = drawn;
    }
    const held = e.capacity === null ? brief(e.tokens) : `${brief(e.tokens)} of ${brief(e.capacity)}`;
    const told = (n, what) => (n === null ? `${what}s not known` : many(n, what));
    say(facts, [
      e.tokens === null ? "tokens in known prefixes not known" : `${held} tokens in known prefixes`,
      told(e.live, "live request"), e.evictions === null ? "evictions not reported" : `${many(e.evictions, "eviction")} reported`,
    ].join("\n"));
    table.hidden = named.length === 0;
    table.tBodies[0].replaceChildren(...prefixes.map((p, i) => {
      const tr = row("number", "number");
      cells(tr, ["", count(p.tokens), p.live === null ? "" : count(p.live)]);
      tr.cells[0].append(swatch(i), p.name);
      return tr;
    }));
  });
}

function engineCard(e) {
  const head = (text, kind) => make("th", { scope: "col", class: kind }, text);
  return make("section", { class: "engine", "aria-label": e.name },
    make("h3", null, e.name), make("div"), make("p", { class: "soft" }),
    make("table", null,
      make("thead", null, make("tr", null, head("Largest prefixes"), head("Tokens", "number"), head("Live requests", "number"))),
      make("tbody")));
}

function sessions(list) {
  at("no-sessions").hidden = list.length > 0;
  rows(at("sessions"), list.slice(0, 20), (s) => JSON.stringify([s.tenant, s.id]), () => row("", "number", "number"), (tr, s) => {
    cells(tr, [s.held_out ? `${s.id} (held out)` : s.id, s.tenant, count(s.requests), percent(hitRatio(s))]);
    tr.title = `last request ${time(s.last)}`;
  });
}

// row makes a table row whose first cell is its header, with a class for each other cell.
function row(...kinds) {
  return make("tr", null, make("th", { scope: "row" }), ...kinds.map((kind) => make("td", { class: kind || null })));
}
