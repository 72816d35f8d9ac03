import { at, cells, make, row, rows, say } from "./dom.js";
import { count, many, money, moment, time } from "./format.js";

let shown = 10; // misses
let last = null;

// misses shows why prompts were not in the cache: sums by cause, and the last ones.
export function misses(m) {
  at("misses").hidden = !m;
  last = m;
  if (!m) return;
  const paid = (v) => (v === null ? "no price" : money(v, m.currency));
  say(at("misses-note"), m.causes.length === 0
    ? `None: ${many(m.compared, "prompt")} compared with earlier ones of the same tenant.`
    : `By comparing ${many(m.compared, "prompt")} with earlier ones of the same tenant, and by what the provider says where it is asked.` +
      (m.dropped ? ` ${count(m.dropped)} more were not compared: there was no room.` : ""));
  at("causes-known").hidden = m.causes.length === 0;
  rows(at("causes"), m.causes, (c) => JSON.stringify([c.source, c.cause]), () => row("", "number", "number", "number"), (tr, c) => {
    cells(tr, [c.cause, c.source, count(c.misses), count(c.lost_tokens), paid(c.money)]);
  });
  list();
}

at("more-misses").addEventListener("click", () => {
  shown += 40;
  list();
});

function list() {
  at("misses-known").hidden = last.last.length === 0;
  at("more-misses").hidden = last.last.length <= shown;
  rows(at("last-misses"), last.last.slice(0, shown), (m) => JSON.stringify([m.id, m.at, m.source]), missRow, () => {});
}

function missRow(m) {
  const tr = row("id", "", "", "", "number", "number", "number");
  const who = [m.tenant, m.session].filter(Boolean).join(", ");
  cells(tr, [time(m.at), "", who, "", "", m.path ? count(m.token) : "", m.lost_tokens === null ? "not said" : count(m.lost_tokens),
    m.money === null ? "no price" : money(m.money, last.currency)]);
  tr.cells[0].title = moment(m.at);
  if (m.against) tr.cells[4].title = `compared with request ${m.against}`;
  tr.cells[1].append(make("a", { href: `#/requests/${encodeURIComponent(m.id)}` }, m.id));
  tr.cells[3].append(m.reason ? `${m.cause} (${m.source}: ${m.reason})` : m.cause);
  tr.cells[4].append(m.path || (m.source === "ragpilot" ? "nowhere: the prompts are the same there" : "not said"));
  if (m.was || m.is) tr.cells[4].append(make("br"), make("del", null, `was: ${m.was ?? ""}`), make("br"), make("ins", null, `is: ${m.is ?? ""}`));
  return tr;
}
