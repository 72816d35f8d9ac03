// How figures are written. null is "not reported": a figure that nobody knows is not 0.

export const unknown = "not reported";

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const three = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const date = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const exact = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

const known = (write) => (value) => (value === null || value === undefined ? unknown : write(value).replace(/^-/, "−"));

export const count = known((n) => whole.format(n));
export const brief = known((n) => (Math.abs(n) < 10000 ? whole.format(Math.round(n)) : short.format(n)));
export const percent = known((r) => `${(100 * r).toFixed(1)}\u00a0%`);
export const seconds = known((s) => (Math.abs(s) < 0.9995 ? `${three.format(1000 * s)}\u00a0ms` : `${three.format(s)}\u00a0s`));
export const time = (at) => clock.format(new Date(at));
export const day = (at) => date.format(new Date(at));
export const moment = (at) => exact.format(new Date(at));
export const many = (n, one) => `${count(n)} ${n === 1 ? one : one + "s"}`;

// money writes amounts below 1 with three digits, others as the currency has it.
export function money(value, currency) {
  const digits = Math.abs(value) < 0.995 ? { maximumSignificantDigits: 3 } : {};
  try {
    return known((v) => new Intl.NumberFormat("en", { style: "currency", currency, ...digits }).format(v))(value);
  } catch { // no currency that it knows
    return known((v) => `${new Intl.NumberFormat("en", { maximumFractionDigits: 2, ...digits }).format(v)} ${currency}`)(value);
  }
}

// hitRatio is the part of prompt tokens that came from the cache, null where nothing was reported.
export const hitRatio = (x) => (x.prompt_tokens > 0 && x.cached_tokens !== null ? x.cached_tokens / x.prompt_tokens : null);

// done describes what was done to a request.
export function done(request) {
  if (request.failed) return "failed";
  if (request.held_out) return request.shadow ? "would have been held out" : "held out: sent as it came";
  const parts = [];
  if (request.reordered) parts.push(`${count(request.reordered)} reordered`);
  if (request.left_out) parts.push(`${count(request.left_out)} left out`);
  if (request.replaced) parts.push(`${count(request.replaced)} replaced`);
  if (parts.length === 0) return "nothing";
  return request.shadow ? `would have: ${parts.join(", ")}` : parts.join(", ");
}
