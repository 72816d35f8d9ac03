// The page asks for data.json every two seconds and shows it. #/requests/ID shows one request.
import { at, say } from "./dom.js";
import { detail } from "./detail.js";
import { picture } from "./engines.js";
import { percent, time } from "./format.js";
import { overview } from "./overview.js";

const every = 2000, patience = 10000, between = 15000; // milliseconds; between: two texts read out

let data = null;
let paused = false;
let timer = 0;
let spoken = 0;

async function refresh() {
  try {
    if (!paused && !document.hidden) await ask();
  } finally {
    clearTimeout(timer); // of a second refresh meanwhile
    timer = setTimeout(refresh, every);
  }
}

async function ask() {
  let next;
  try {
    next = await get("data.json");
    if (next === null) throw new Error("no data");
  } catch {
    say(at("state"), data ? `No answer. Figures are from ${time(data.now)}.` : "No answer from the server.");
    return;
  }
  if (paused) return;
  data = next;
  overview(data);
  picture(get, () => paused);
  say(at("notice"), data.notice ?? "");
  at("notice").hidden = !data.notice;
  say(at("state"), `Updated ${time(data.now)}`);
  speak();
}

// get returns what stands at a path, null if there is nothing.
async function get(path) {
  const answer = await fetch(path, { signal: AbortSignal.timeout(patience) });
  if (answer.status === 404) return null;
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

// speak announces to screen readers what has changed, but not every two seconds.
function speak() {
  if (Date.now() - spoken < between) return;
  const { requests, hit_ratio: ratio } = data.totals;
  const text = `${requests} requests, hit ratio ${percent(ratio)}`;
  if (at("spoken").textContent !== text) spoken = Date.now();
  say(at("spoken"), text);
}

at("pause").addEventListener("click", () => {
  paused = !paused;
  at("pause").setAttribute("aria-pressed", paused);
  if (paused) say(at("state"), data ? `Paused at ${time(data.now)}` : "Paused");
  else refresh();
});

at("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the hash is the view's
  at("main").focus();
});

document.addEventListener("visibilitychange", () => document.hidden || refresh());

// view shows what the address names. Coming back, the link that was followed has the focus again.
let viewed = null;

async function view() {
  const id = requestID();
  const before = viewed;
  viewed = id;
  if (id !== null) {
    const found = await get(`requests/${encodeURIComponent(id)}.json`).catch(() => undefined);
    if (viewed !== id) return; // another one was asked for meanwhile
    const heading = detail(at("detail"), id, found, data?.texts);
    switchTo("detail", `Request ${id} – ragpilot`);
    heading.focus();
    scrollTo(0, 0);
    return;
  }
  switchTo("overview", "ragpilot");
  if (before === null) return;
  const row = [...at("requests").rows].find((r) => r.dataset.key === before);
  (row?.querySelector("a") ?? at("main")).focus();
}

function switchTo(name, title) {
  for (const other of ["overview", "detail"]) at(other).hidden = other !== name;
  document.title = title;
}

function requestID() {
  const match = /^#\/requests\/(.+)$/.exec(location.hash);
  try {
    return match && decodeURIComponent(match[1]);
  } catch { // a % that begins nothing
    return match[1];
  }
}

addEventListener("hashchange", view);
refresh().finally(view);
