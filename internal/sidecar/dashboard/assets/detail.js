import { make } from "./dom.js";
import { bar, swatch } from "./chart.js";
import { compare } from "./compare.js";
import { count, done, hitRatio, many, moment, percent, seconds, unknown } from "./format.js";

// detail shows one request in a place and returns its heading, to be focused. d is null if the request is not kept, and
// undefined if nobody answered.
export function detail(place, id, d, texts) {
  const title = make("h2", { id: "detail-title", tabindex: "-1" }, "Request ", make("code", null, id));
  place.replaceChildren(make("p", null, make("a", { href: "#/" }, "← All requests")), title,
    ...(d ? parts(d, texts) : [make("p", null, d === null ? "This request is no longer kept; only the last ones are." : "No answer from the server.")]));
  return title;
}

function parts(d, texts) {
  return [
    make("dl", { class: "facts" },
      fact("Came", moment(d.at)), fact("Path", d.path), fact("Model", d.model || unknown),
      fact("Tenant", d.tenant), fact("Session", d.session || "unknown")),
    make("div", { class: "three" }, actions(d), tokens(d), stages(d)),
    prompt(d, texts),
  ];
}

const fact = (name, text) => make("div", null, make("dt", null, name), make("dd", null, text));

const section = (id, title, ...children) =>
  make("section", { "aria-labelledby": id }, make("h3", { id }, title), ...children);

function table(name, head, body) {
  return make("table", { "aria-label": name },
    make("thead", null, make("tr", null, ...head.map((text, i) => make("th", { scope: "col", class: i ? "number" : null }, text)))),
    make("tbody", null, ...body.map(([first, ...others]) =>
      make("tr", null, make("th", { scope: "row" }, ...[first].flat()), ...others.map((text) => make("td", { class: "number" }, text))))));
}

function actions(d) {
  const title = d.shadow ? "What would have been done" : "What was done";
  return section("actions-title", title,
    d.failed || d.held_out ? make("p", null, done(d)) : null,
    d.shadow ? make("p", null, "Shadow mode: the request was sent as it came.") : null,
    table(title, ["Texts", "Number"], [
      ["Documents found", count(d.documents)], ["Documents reordered", count(d.reordered)], ["Documents left out", count(d.left_out)],
      ["Blocks replaced", count(d.replaced)], ["Characters not sent", count(d.chars_saved)],
    ]),
    ...(d.orders ?? []).map((o) => make("p", { class: "order" }, `${o.where}: ${d.shadow ? "would have been sent as" : "sent as"} `,
      make("code", null, (o.sent ?? []).map((n) => n + 1).join(" ")), ` (numbered as they came)`)));
}

function tokens(d) {
  const body = [["Prompt", count(d.prompt_tokens)], [d.shadow ? "Would have been predicted in the cache" : "Predicted in the cache", count(d.predicted_tokens)], ["Reported from the cache", count(d.cached_tokens)]];
  if (d.prompt_tokens !== null && d.cached_tokens !== null) body.push(["Hit ratio", percent(hitRatio(d))]);
  return section("tokens-title", "Tokens",
    d.prompt_tokens === null ? null : bar(d.prompt_tokens, [d.cached_tokens ?? 0], d.predicted_tokens),
    d.prompt_tokens === null ? null : make("p", { class: "soft" }, d.shadow ? "Filled: from the cache. Mark: as would have been predicted." : "Filled: from the cache. Mark: as predicted."),
    table("Tokens", ["Part", "Tokens"], body));
}

function stages(d) {
  const list = d.stages ?? [];
  return section("stages-title", "Time",
    list.length ? bar(list.reduce((sum, s) => sum + s.seconds, 0), list.map((s) => s.seconds)) : null,
    table("Time", ["Stage", "Time"], [...list.map((s, i) => [[swatch(i), s.name], seconds(s.seconds)]), ["To the first byte", seconds(d.ttft_s)], ["In all", seconds(d.total_s)]]));
}

function prompt(d, texts) {
  if (!d.before && !d.after) {
    return section("prompt-title", "Prompt", make("p", null, texts
      ? "Texts are kept, but none came with this request."
      : "Nothing to show: texts of prompts are not kept unless the server is asked to keep them."));
  }
  const [before, after] = d.before && d.after ? compare(d.before.text, d.after.text)
    : [d.before, d.after].map((t) => (t ? [{ mark: "same", lines: [t.text] }] : []));
  return section("prompt-title", "Prompt",
    make("p", { class: "legend soft" }, "Lines: ", make("mark", null, "moved"), make("del", null, "only before"), make("ins", null, "only after")),
    make("div", { class: "two" }, text("before", "Before: as it came", d.before, before, "del"), text("after", d.shadow ? "After: as it would have been sent" : "After: as it was sent", d.after, after, "ins")));
}

const tags = { same: "span", moved: "mark" };

function text(id, title, t, runs, only) {
  const whole = t?.bytes || 0, kept = t ? new TextEncoder().encode(t.text).length : 0;
  return make("section", { "aria-labelledby": `${id}-title` }, make("h4", { id: `${id}-title` }, title),
    t ? make("pre", { id, tabindex: "0", role: "region", "aria-labelledby": `${id}-title` },
      ...runs.map((run) => make(tags[run.mark] ?? only, null, run.lines.join("\n") + "\n")))
      : make("p", null, "Not kept."),
    whole > kept ? make("p", { class: "soft" }, `The first ${count(kept)} of ${many(whole, "byte")} are kept.`) : null);
}
