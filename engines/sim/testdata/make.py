"""Writes synthetic/: a made-up trace, a plan for it with references and hints, and what the evaluation's cache model
says of every request.  Run with the folder that holds prefixcache.py: python3 make.py FOLDER
"""
import json, os, random, sys

sys.path.insert(0, sys.argv[1])
import prefixcache as judge

rnd = random.Random(11)
out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "synthetic")


def words(n):
    return " ".join("".join(rnd.choice("abcdefghijklmnop_\u00e9\u4e16") for _ in range(rnd.randrange(1, 10))) for _ in range(n))


blocks = [{"id": i if i % 3 else "d%d" % i, "text": words(rnd.randrange(3, 60))} for i in range(24)]
trace = []
live = {"s%d" % s: 0 for s in range(30)}
while live and len(trace) < 70:
    s = rnd.choice(sorted(live))
    live[s] += 1
    r = {"id": len(trace), "session": s, "turn": live[s], "query": words(rnd.randrange(1, 12)),
         "docs": [b["id"] for b in rnd.sample(blocks[:6 + len(trace) // 4], rnd.randrange(0, 6))]}
    if rnd.random() < 0.5:
        r["answer"] = words(rnd.randrange(1, 30))
    trace.append(r)
    if rnd.random() < 0.4:
        del live[s]
plan, shown = [], {}
for r in trace:
    old = shown.setdefault(r["session"], set())
    refs = [d for d in r["docs"] if d in old and rnd.random() < 0.7]
    docs = sorted((d for d in r["docs"] if d not in refs), key=str)
    old.update(docs)
    plan.append({"id": r["id"], "session": r["session"], "turn": r["turn"], "docs": docs, "refs": refs,
                 "hint": "read %s first" % docs[0] if docs else ""})
for name, rows in ("trace", trace), ("blocks", blocks), ("plan", plan):
    with open(os.path.join(out, name + ".jsonl"), "w") as f:
        f.writelines(json.dumps(x) + "\n" for x in rows)

t, b = judge.load(os.path.join(out, "trace.jsonl"), os.path.join(out, "blocks.jsonl"))
assert not judge.validate(t, plan)
runs = []
for history in "full", "none":
    for use in (False, True) if history == "full" else (False,):
        for spec in "unlimited", "20%", "5%", "3000", "700":
            per = []
            cap = judge.capacity_tokens(spec, t, b, history)
            m = judge.simulate(t, b, plan if use else None, cap, history=history, per_request=per)
            runs.append({"plan": use, "history": history == "full", "capacity": spec, "tokens": cap or 0,
                         "evicted": m["evicted_blocks"], "oversize": m["oversize"],
                         "prompt": [x[1] for x in per], "cached": [x[2] for x in per]})
with open(os.path.join(out, "expected.json"), "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(x) for x in runs) + "\n]\n")
