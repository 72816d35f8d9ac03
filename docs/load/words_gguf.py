#!/usr/bin/env python3
"""Writes a tiny model for llama.cpp whose vocabulary is learnt from texts, so that prompts have about as many tokens as with
a real model: byte pairs are merged by how often they stand side by side. The weights are random, and as few as can be.

usage: words_gguf.py OUT.gguf BLOCKS.jsonl...

What it says is noise; tokens, slots and cache hits are those of a real model. The vocabulary holds parts of words of the
texts: keep the file with them. Needs the standard library only.
"""
import collections
import heapq
import importlib.util
import json
import pathlib
import re
import sys

MERGES = 4000
CHARACTERS = 700_000  # of each file
HIDDEN, LAYERS, HEADS, FORWARD, CONTEXT = 32, 1, 1, 32, 1 << 20

# As llama.cpp splits for vocabularies of this type ("gpt-2"), but for what is neither letter, digit nor space.
PARTS = re.compile(r" ?[^\W\d_]+| ?\d+| ?[^\s\w]+|\s+(?!\S)|\s+")


def words(paths, letters):
    """The parts of the texts, as tuples of letters, and how often each comes."""
    count = collections.Counter()
    for path in paths:
        read = 0
        with open(path, encoding="utf-8") as f:
            for line in f:
                text = json.loads(line)["text"]
                count.update(PARTS.findall(text))
                read += len(text)
                if read > CHARACTERS:
                    break
    return [([letters[b] for b in word.encode()], n) for word, n in sorted(count.items()) if n > 1]


def learn(counted, merges):
    """The most frequent pairs, one after the other, each counted after those before it were merged."""
    often, where = collections.Counter(), collections.defaultdict(set)
    for i, (parts, n) in enumerate(counted):
        for pair in zip(parts, parts[1:]):
            often[pair] += n
            where[pair].add(i)
    heap = [(-n, pair) for pair, n in often.items()]
    heapq.heapify(heap)
    while heap and merges > 0:
        n, pair = heapq.heappop(heap)
        if often[pair] != -n:  # has changed since
            if often[pair] > 0:
                heapq.heappush(heap, (-often[pair], pair))
            continue
        merges -= 1
        yield pair
        changed = set()
        for i in where.pop(pair):
            parts, times = counted[i]
            for old in zip(parts, parts[1:]):
                often[old] -= times
            merged, k = [], 0
            while k < len(parts):
                both = tuple(parts[k : k + 2]) == pair
                merged.append("".join(pair) if both else parts[k])
                k += 2 if both else 1
            counted[i] = merged, times
            for new in zip(merged, merged[1:]):
                often[new] += times
                where[new].add(i)
                changed.add(new)
        for new in sorted(changed):
            heapq.heappush(heap, (-often[new], new))


def main(out, paths):
    path = pathlib.Path(__file__).resolve().parents[2] / ".ci/llamacpp/tiny_gguf.py"
    spec = importlib.util.spec_from_file_location("tiny_gguf", path)
    tiny = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tiny)
    tiny.HIDDEN, tiny.LAYERS, tiny.HEADS, tiny.KV_HEADS, tiny.FORWARD, tiny.CONTEXT = HIDDEN, LAYERS, HEADS, 1, FORWARD, CONTEXT

    def vocabulary():
        letters = tiny.byte_letters()
        tokens, merges = tiny.SPECIAL + [letters[b] for b in range(256)], []
        for left, right in learn(words(paths, letters), MERGES):
            merges.append(left + " " + right)
            if left + right not in tokens:
                tokens.append(left + right)
        return tokens, merges

    tiny.vocabulary = vocabulary
    tiny.main(out)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
