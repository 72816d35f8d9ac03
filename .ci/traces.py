"""Fails if a tracked file holds a run of words of the traces: traces.py SHARED. Their texts are not ours to give away."""

import gzip
import json
import pathlib
import re
import subprocess
import sys

RUN = 12  # words that are not equal by accident


def words(text):
    return re.findall(r"\w+", text.lower())


def runs(text):
    found = words(text)
    return (" ".join(found[i : i + RUN]) for i in range(len(found) - RUN + 1))


def texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for v in value.values():
            yield from texts(v)
    elif isinstance(value, list):
        for v in value:
            yield from texts(v)


def content(path):
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    return data.decode(errors="replace")


def main():
    known = set()
    for path in sorted(pathlib.Path(sys.argv[1], "traces").glob("*/*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                for text in texts(json.loads(line)):
                    known.update(runs(text))
    if not known:
        sys.exit(f"no texts under {sys.argv[1]}/traces")
    tracked = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True).stdout.decode().split("\0")
    bad = 0
    for name in filter(None, tracked):
        for run in runs(content(pathlib.Path(name))):
            if run in known:
                print(f"{name}: {run}")
                bad += 1
                break
    print(f"{len(known)} runs of {RUN} words of the traces, {len(tracked) - 1} files: {bad} have one")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
