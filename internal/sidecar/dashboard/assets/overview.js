import { at, cells, make, row, rows, say } from "./dom.js";
import { bar, chart } from "./chart.js";
import { feeds } from "./feeds.js";
import { misses } from "./misses.js";
import { engines, samples as sampleRows } from "./engines.js";
import { brief, count, day, done, hitRatio, many, money, percent, seconds, time } from "./format.js";

let shown = 20; // requests
let last = null;

export function overview(data) {
  if (last?.since !== data.since) at("requests").replaceChildren(); // another run of the server
  last = data;
  hits(data);
  saved(data);
  requests(data);
  misses(data.misses);
  cloud(data.cloud);
  engines(data);
  feeds(data.feeds ?? []);
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
  sampleRows(at("samples"), samples);
  const { shadow } = totals;
  at("hit-shadow").hidden = !shadow.requests;
  say(at("hit-shadow"), `Shadow mode, sent as they came: ${shadow.hit_ratio === null ? "not reported" : percent(shadow.hit_ratio)}, in ${many(shadow.requests, "request")}. ` +
    `Would have left out ${many(shadow.left_out, "document")}, replaced ${many(shadow.replaced, "block")}, and not sent ${many(shadow.chars_saved, "character")}.`);
}

function saved(data) {
  const { tokens, seconds: waited, money: paid } = data.saved;
  saving("saved-tokens", tokens, brief);
  saving("saved-seconds", waited, seconds);
  at("saved-money").hidden = !paid;
  if (paid) saving("saved-money", paid, (v) => money(v, paid.currency));
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

function sessions(list) {
  at("no-sessions").hidden = list.length > 0;
  rows(at("sessions"), list.slice(0, 20), (s) => JSON.stringify([s.tenant, s.id]), () => row("", "number", "number"), (tr, s) => {
    cells(tr, [s.held_out ? `${s.id} (held out)` : s.id, s.tenant, count(s.requests), percent(hitRatio(s))]);
    tr.title = `last request ${time(s.last)}`;
  });
}

// cloud shows what a provider's cache has done, for all and by tenant.
function cloud(c) {
  at("cloud").hidden = !c;
  if (!c) return;
  say(at("cloud-title"), `The cache of ${c.provider}`);
  const paid = (v) => (v === null ? "no price" : money(v, c.currency));
  const numbers = Array(7).fill("number");
  rows(at("accounts"), [{ ...c.total, all: true }, ...(c.tenants ?? [])], (a) => (a.all ? "all" : `tenant ${a.tenant}`), () => row(...numbers), (tr, a) => {
    cells(tr, [a.all ? "All" : a.tenant || "(no name)", count(a.answers), count(a.plain_tokens), count(a.read_tokens), count(a.written_tokens), count(a.output_tokens), paid(a.cost), paid(a.saved)]);
  });
  say(at("cloud-note"), "By the usage in its answers. " + (c.currency
    ? "Saved: against the same prompts without a cache; below 0 if writing to it has cost more than reading saved."
    : "The settings name no prices, so nothing is known in money."));
}
