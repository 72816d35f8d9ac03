#!/usr/bin/env python3
"""Write the made-up trace beside this file: 160 requests in 120 conversations, 8 of 60 documents each, drawn by topic.

The words are single tokens both for the simulator and for the tiny random model that the real engine served.
"""
import json
import os
import random

WORDS = """bace bafo baki balo bamu bape baro bave bawi ceba cece cefo cegu ceha ceki celo cero cesu cexo ceyu ceza diba dice
didi dije diki dimu foce fodi folo fove fowi gufo gugu guha guje gumu guna gusu guta guwi guyu guza haba hafo hagu haha haki
hamu hana hasu jece jefo jena jero jesu jeta jexo jeyu jeza kipe kisu kita kiwi kiyu loje lomu lope loza muce mufo muki mulo
muna muro musu muwi muxo nace nadi nagu naha naje naki nalo nasu nata nave naxo nayu pegu peha pena peve peza roba rogu roha
roje rove royu suce sudi sugu suki sumu suna supe tace tadi tagu tamu tana taro tave tayu veba veje vemu vena vero veta veyu
wiba wice wije wiki wita wive wixo wiza xoce xofo xogu xoha xolo xomu xona xope xoro xosu xove xoxo xoyu yuce yuha yuki yumu
yuna yuwi yuxo yuza zaba zafo zagu zaha zaki zalo zaro zata""".split()

here = os.path.dirname(os.path.abspath(__file__))
rnd = random.Random(7)
text = lambda n: " ".join(rnd.choice(WORDS) for _ in range(n))
docs = [f"d{i}" for i in range(60)]
with open(os.path.join(here, "blocks.jsonl"), "w") as f:
    for d in docs:
        print(json.dumps({"id": d, "text": text(rnd.randint(60, 140))}), file=f)
requests, turns, left = [], {}, {}
for s in range(120):
    left[f"s{s}"] = 2 if rnd.random() < 1 / 3 else 1
order = [s for s in left for _ in range(left[s])]
for s in order:
    turns[s] = turns.get(s, 0) + 1
    topic = rnd.choices(range(6), weights=[6, 5, 4, 3, 2, 1])[0]
    weights = [(4 if i // 10 == topic else 0.3) / (1 + i % 10) for i in range(60)]
    pick = []
    while len(pick) < 8:
        d = rnd.choices(docs, weights=weights)[0]
        if d not in pick:
            pick.append(d)
    requests.append({"id": f"q{len(requests)}", "session": s, "turn": turns[s], "query": text(8), "docs": pick, "answer": text(rnd.randint(12, 48))})
with open(os.path.join(here, "trace.jsonl"), "w") as f:
    for q in requests:
        print(json.dumps(q), file=f)
