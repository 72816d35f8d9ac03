#!/usr/bin/env python3
"""Judge every policy on every open trace, online and offline, and keep docs/results.md true.

usage: judge.py RAGPILOT SHARED [--write | --short]

Plans are made by the given binary and judged by SHARED/eval/prefixcache.py, which is not part of this project.
Fails if a plan is invalid, if a figure is below its floor, or if the table in docs/results.md is not what was
measured; --write puts the measured table there instead. --short takes the default and the best policy only, and compares
their rows.
"""
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

# "default" is what ragpilot does without any flag; the policies are compared with profile most-reuse, where the order alone differs
POLICIES = ["retrieval", "sorted", "frequency", "recency", "random", "knowledge-tree", "paper", "best", "default"]
TRACES = ["multihop-2wiki", "memory-locomo-k100", "chat-mtragun"]
CAPACITIES = ["unlimited", "20%", "5%"]
# doc saved that must not be undercut: a figure for the unlimited cache, or one for each capacity
FLOORS = {
    ("paper", "online"): [0.378, 0.249, 0.420],
    ("paper", "offline"): [0.520, 0.712, None],
    ("knowledge-tree", "online"): [0.209, 0.348, 0.425],
    ("best", "online"): [[0.49, 0.465, 0.40], [0.50, 0.465, 0.32], [0.439, 0.433, 0.424]],
    ("best", "offline"): [[0.575] * 3, [0.75] * 3, [0.454] * 3],
    ("default", "online"): [[0.49, 0.46, 0.39], [0.49, 0.46, 0.31], [0.438, 0.432, 0.424]],
    ("default", "offline"): [[0.57] * 3, [0.74] * 3, [0.454] * 3],
}
# by how many points "saved vs plain" may be lower with the order notes of most-reuse than without
NOTES = [1, 2, 1]
# what of the sequential figure must be left where 16 requests at a time cannot reuse each other
LANES = 0.97
LIMITS = [("none", []), ("`--max-displacement 5`", ["--max-displacement", "5"]), ("`--max-displacement 20`", ["--max-displacement", "20"]),
          ("`--pin 1`", ["--pin", "1"]), ("`--keep-top-at-end 1`", ["--keep-top-at-end", "1"]),
          ("`--keep-top-at-end 3`", ["--keep-top-at-end", "3"])]
# recorded by others on the same traces, unlimited cache (README of the traces): policy, mode, doc saved
BASELINES = [
    ("Python reference of ContextPilot 0.4.2, one request at a time", "online", ["0.388", "0.259", "0.430"]),
    ("Python reference of ContextPilot 0.4.2, whole trace", "offline", ["0.530", "0.722", "–"]),
    ("RAGCache++ Alg. 1 as printed", "online", ["0.219", "0.358", "0.435"]),
    ("frequency over the requests seen so far", "online", ["0.391", "–", "–"]),
    ("frequency over the whole trace", "offline", ["0.437", "0.159", "–"]),
]
BEGIN, END = "<!-- judge: begin -->", "<!-- judge: end -->"


def judge(binary, shared, trace, policy, mode, plan_flags=(), eval_flags=(), capacities=CAPACITIES):
    folder = os.path.join(shared, "traces", trace)
    files = ["--trace", os.path.join(folder, "trace.jsonl"), "--blocks", os.path.join(folder, "blocks.jsonl")]
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as plan:
        flags = ["--offline"] if mode == "offline" else []
        if policy != "default":
            flags += ["--policy", policy, "--profile", "most-reuse"]
        subprocess.run([binary, "plan", *files, *flags, *plan_flags], stdout=plan, check=True)
        out = subprocess.run(
            [sys.executable, os.path.join(shared, "eval", "prefixcache.py"), "eval", *files, "--plan", plan.name,
             "--mode", mode, "--json", "--capacity", *capacities, *eval_flags], capture_output=True, text=True)
    if out.returncode:
        raise SystemExit("%s, %s, %s: %s%s" % (trace, policy, mode, out.stdout, out.stderr))
    return json.loads(out.stdout)["runs"]


def bound(binary, shared, trace):
    """The upper bound for any order."""
    folder = os.path.join(shared, "traces", trace)
    out = subprocess.run([binary, "bounds", "--trace", os.path.join(folder, "trace.jsonl"), "--blocks", os.path.join(folder, "blocks.jsonl"), "--json"],
                         stdout=subprocess.PIPE, check=True)
    return json.loads(out.stdout)["any"]


def policies(run, low, bounds, names):
    """Policies, online and offline."""
    jobs = [(m, p, t) for m in ("online", "offline") for p in names for t in TRACES]
    runs = dict(zip(jobs, run([((t, p, m), {}) for m, p, t in jobs])))
    rows = ["| policy | mode | " + " | ".join(TRACES) + " |", "|---|---|" + "---|" * len(TRACES)]
    for mode in ("online", "offline"):
        for policy in names:
            cells = []
            for i, trace in enumerate(TRACES):
                saved = [r["doc_saved_ratio"] for r in runs[mode, policy, trace]]
                cells.append("**%.3f** / %.3f / %.3f" % tuple(saved))
                floor = FLOORS.get((policy, mode), [None] * 3)[i]
                floors = floor if isinstance(floor, list) else [floor, None, None]
                if saved[0] > bounds[i]:
                    low.append("%s, %s, %s: doc saved %.5f is above the upper bound for any order, %.5f" % (trace, policy, mode, saved[0], bounds[i]))
                for capacity, got, want in zip(CAPACITIES, saved, floors):
                    if want is not None and got < want:
                        low.append("%s, %s, %s, %s: doc saved %.5f is below %.3f" % (trace, policy, mode, capacity, got, want))
            rows.append("| `%s` | %s | %s |" % (policy, mode, " | ".join(cells)))
    rows += ["| *%s* | %s | %s |" % (name, mode, " | ".join(cells)) for name, mode, cells in BASELINES]
    rows.append("| *upper bound for any order (`ragpilot bounds`)* | both | %s |" % " | ".join("%.3f" % b for b in bounds))
    rows += ["", "Prompt tokens that have to be computed per request, unlimited cache, order notes and echoes included:", "",
             "| policy | mode | " + " | ".join(TRACES) + " |", "|---|---|" + "---|" * len(TRACES)]
    for mode in ("online", "offline"):
        for policy in names:
            rows.append("| `%s` | %s | %s |" % (policy, mode, " | ".join(
                "%.0f" % runs[mode, policy, t][0]["computed_per_request"] for t in TRACES)))
    return rows, {t: runs["online", "best", t][0] for t in TRACES}, {t: runs["offline", "best", t][0] for t in TRACES}


def notes(run, low, default):
    """What the forms of the order note cost."""
    forms = ["none", "top-1", "displaced-only", "full"]
    runs = iter(run([((t, "best", "online"), {"plan_flags": ["--hint", f], "capacities": ["unlimited"]}) for f in forms for t in TRACES]))
    rows = ["", "Saved vs plain (1 − prompt tokens computed / all prompt tokens of retrieval order without references, cached or not), `best` online, unlimited cache, by form of the order note:",
            "", "| `--hint` | " + " | ".join(TRACES) + " |", "|---|" + "---|" * len(TRACES)]
    rows.append("| auto: the best 3 | %s |" % " | ".join("%.3f" % default[t]["saved_vs_plain"] for t in TRACES))
    for f in forms:
        got = [next(runs)[0]["saved_vs_plain"] for _ in TRACES]
        rows.append("| %s | %s |" % (f, " | ".join("%.3f" % x for x in got)))
        if f == "none":
            for t, x, points in zip(TRACES, got, NOTES):
                if default[t]["saved_vs_plain"] < x - points / 100:
                    low.append("%s: order notes cost %.2f points" % (t, 100 * (x - default[t]["saved_vs_plain"])))
    return rows


def lanes(run, low, sequential):
    """16 requests side by side that cannot reuse each other."""
    flags = ["--batch", "16", "--no-batch-share"]
    ways = [("16", ["--concurrency", "16"]), ("1", [])]
    runs = iter(run([((t, "best", "offline"), {"plan_flags": f, "eval_flags": flags, "capacities": ["unlimited"]})
                     for _, f in ways for t in TRACES]))
    rows = ["", "Doc saved, `best` offline, where batches of 16 requests cannot reuse each other:", "",
            "| schedule | " + " | ".join(TRACES) + " |", "|---|" + "---|" * len(TRACES)]
    rows.append("| one request at a time | %s |" % " | ".join("%.3f" % sequential[t]["doc_saved_ratio"] for t in TRACES))
    for n, _ in ways:
        got = [next(runs)[0]["doc_saved_ratio"] for _ in TRACES]
        rows.append("| batches of 16, `--concurrency %s` | %s |" % (n, " | ".join("%.3f" % x for x in got)))
        if n == "16":
            for t, x in zip(TRACES, got):
                if x < LANES * sequential[t]["doc_saved_ratio"]:
                    low.append("%s: 16 lanes keep %.1f %%" % (t, 100 * x / sequential[t]["doc_saved_ratio"]))
    return rows


def limits(run):
    """The price of limits on the order."""
    runs = iter(run([((t, "best", "online"), {"plan_flags": f, "capacities": ["unlimited"]}) for _, f in LIMITS for t in TRACES]))
    rows = ["", "Doc saved, `best` online, unlimited cache, with a limit on the order:", "",
            "| limit | " + " | ".join(TRACES) + " |", "|---|" + "---|" * len(TRACES)]
    for name, _ in LIMITS:
        rows.append("| %s | %s |" % (name, " | ".join("%.3f" % next(runs)[0]["doc_saved_ratio"] for _ in TRACES)))
    return rows


def main():
    binary, shared = sys.argv[1:3]
    low, plans, short = [], 0, "--short" in sys.argv
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        def run(jobs):
            nonlocal plans
            plans += len(jobs)
            return list(pool.map(lambda j: judge(binary, shared, *j[0], **j[1]), jobs))

        rows, online, offline = policies(run, low, list(pool.map(lambda t: bound(binary, shared, t), TRACES)),
                                         ["best", "default"] if short else POLICIES)
        if not short:
            rows += notes(run, low, online) + lanes(run, low, offline) + limits(run)
    table = "\n".join(rows)
    print(table)
    if low:
        raise SystemExit("\n".join(low))
    with open("docs/results.md", encoding="utf-8") as f:
        head, _, rest = f.read().partition(BEGIN)
    old, _, tail = rest.partition(END)
    if "--write" in sys.argv:
        with open("docs/results.md", "w", encoding="utf-8") as f:
            f.write(head + BEGIN + "\n" + table + "\n" + END + tail)
    elif old.strip() != table and not (short and set(rows) <= set(old.split("\n"))):
        raise SystemExit("docs/results.md does not show these figures: run make results")
    print("%d plans valid, all floors held, docs/results.md is up to date" % plans)


if __name__ == "__main__":
    main()
