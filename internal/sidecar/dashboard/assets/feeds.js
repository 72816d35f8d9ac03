import { at, cells, row, rows } from "./dom.js";
import { count, time } from "./format.js";

// feeds lists the streams of cache events, and whether they are complete.
export function feeds(list) {
  at("feeds-known").hidden = list.length === 0;
  rows(at("feeds"), list, (f) => JSON.stringify([f.source, f.topic]), () => row("", "number", "number"), (tr, f) => {
    cells(tr, [f.topic ? `${f.source}, ${f.topic}` : f.source, state(f), count(f.events), count(f.holes)]);
  });
}

function state(f) {
  const parts = [f.connected ? "" : "not connected", f.complete ? "complete" : "incomplete"].filter(Boolean);
  if (f.since) parts[parts.length - 1] += ` since ${time(f.since)} (${f.cause})`;
  return parts.join(", ") + (f.problem ? `: ${f.problem}` : "");
}
