import { draw } from "./dom.js";
import { hitRatio, percent, time } from "./format.js";

const height = 220, left = 44, right = 12, top = 10, bottom = 24;

// chart draws the hit ratio over time into a place, as wide as it is. An interval without a ratio has no point; where
// more than a few are missing, the line has a gap.
export function chart(place, samples, heldOut, interval) {
  const width = Math.max(place.clientWidth, 240);
  const points = samples.map((s) => ({ ...s, ratio: hitRatio(s), at: Date.parse(s.at) })).filter((s) => s.ratio !== null);
  const from = points.length ? points[0].at : 0, until = points.length ? Math.max(points.at(-1).at, from + 1) : 1;
  const x = (t) => left + ((t - from) / (until - from)) * (width - left - right);
  const y = (r) => top + (1 - r) * (height - top - bottom);
  const near = (n) => n.toFixed(1);

  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": describe(points, heldOut) });
  for (const r of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(draw("line", { class: "grid", x1: left, x2: width - right, y1: y(r), y2: y(r) }));
    svg.append(draw("text", { x: left - 8, y: y(r) + 4, "text-anchor": "end" }, `${100 * r} %`));
  }
  for (const t of points.length ? ticks(from, until, width / 110) : []) {
    svg.append(draw("text", { x: near(x(t)), y: height - 6, "text-anchor": x(t) > width - 40 ? "end" : "middle" }, time(t)));
  }
  if (heldOut !== null) {
    svg.append(draw("line", { class: "held-out", x1: left, x2: width - right, y1: y(heldOut), y2: y(heldOut) }));
    svg.append(draw("text", { class: "held-out", x: width - right, y: y(heldOut) + (heldOut > 0.15 ? 15 : -6), "text-anchor": "end" }, `held out ${percent(heldOut)}`));
  }
  for (const run of runs(points, 6000 * interval)) {
    const line = run.map((p) => `${near(x(p.at))} ${near(y(p.ratio))}`).join(" L ");
    svg.append(draw("path", { class: "area", d: `M ${near(x(run[0].at))} ${y(0)} L ${line} L ${near(x(run.at(-1).at))} ${y(0)} Z` }));
    svg.append(draw("path", { class: "line", d: `M ${line}` }));
  }
  const radius = points.length > 90 ? 1.2 : 2.5;
  for (const p of points) {
    svg.append(draw("circle", { class: "point", cx: near(x(p.at)), cy: near(y(p.ratio)), r: radius }, draw("title", null, `${time(p.at)}: ${percent(p.ratio)}`)));
  }
  place.replaceChildren(svg);
}

// ticks are round times, at most so many.
function ticks(from, until, most) {
  const steps = [10, 30, 60, 120, 300, 600, 1200, 3600, 7200, 21600, 43200, 86400].map((s) => 1000 * s);
  const step = steps.find((s) => (until - from) / s <= most) ?? until - from;
  const out = [];
  for (let t = Math.ceil(from / step) * step; t <= until; t += step) out.push(t);
  return out;
}

// runs splits points where time passed without any.
function runs(points, gap) {
  const out = [];
  points.forEach((p, i) => {
    if (i === 0 || p.at - points[i - 1].at > gap) out.push([]);
    out.at(-1).push(p);
  });
  return out;
}

function describe(points, heldOut) {
  if (!points.length) return "Hit ratio over time: nothing reported yet";
  const ratios = points.map((p) => p.ratio);
  const text = `Hit ratio from ${time(points[0].at)} to ${time(points.at(-1).at)}: lowest ${percent(Math.min(...ratios))}, ` +
    `highest ${percent(Math.max(...ratios))}, last ${percent(ratios.at(-1))}`;
  return heldOut === null ? text : `${text}; held out ${percent(heldOut)}`;
}

// bar draws parts of a whole side by side. Its figures stand beside it in words, so it is left out for those who listen.
export function bar(whole, parts, mark = null) {
  const svg = draw("svg", { class: "bar", viewBox: "0 0 1000 10", preserveAspectRatio: "none", "aria-hidden": "true" });
  svg.append(draw("rect", { class: "whole", width: 1000, height: 10 }));
  let x = 0;
  const scale = whole > 0 ? 1000 / whole : 0;
  parts.forEach((part, i) => {
    const width = Math.max(0, Math.min(part * scale, 1000 - x));
    svg.append(draw("rect", { class: `part-${i % 4}`, x, width, height: 10 }));
    x += width;
  });
  if (mark !== null) svg.append(draw("rect", { class: "mark", x: Math.min(mark * scale, 996), width: 4, height: 10 }));
  return svg;
}

// swatch is the colour of a part of a bar, before its name.
export const swatch = (i) => draw("svg", { class: "swatch", viewBox: "0 0 10 10", "aria-hidden": "true" },
  draw("rect", { class: `part-${i % 4}`, width: 10, height: 10 }));
