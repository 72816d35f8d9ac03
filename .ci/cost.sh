#!/usr/bin/env bash
# What planning costs, as growth curves on generated traces; see docs/results.md. Best on an idle machine.
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
go build -o "$tmp/ragpilot" ./cmd/ragpilot
for n in 2000 10000 100000; do
	"$tmp/ragpilot" trace gen --seed 1 --contexts "$n" --k 15 --pool $((n / 3)) --zipf 1.0 --topics $((n / 50)) \
		--trace "$tmp/t.jsonl" --blocks "$tmp/b.jsonl" 2>/dev/null
	echo "online, $n contexts, k 15"
	"$tmp/ragpilot" bench --trace "$tmp/t.jsonl" --blocks "$tmp/b.jsonl" --policy knowledge-tree,paper,best --timed 500
	start=$(date +%s%N)
	"$tmp/ragpilot" plan --offline --trace "$tmp/t.jsonl" --blocks "$tmp/b.jsonl" >/dev/null
	echo "offline, $n contexts, files read and written: $((($(date +%s%N) - start) / 1000000)) ms"
done
"$tmp/ragpilot" trace gen --seed 1 --contexts 12000 --k 100 --pool 4000 --zipf 1.0 --topics 240 --trace "$tmp/t.jsonl" --blocks "$tmp/b.jsonl" 2>/dev/null
echo "online, 12000 contexts, k 100"
"$tmp/ragpilot" bench --trace "$tmp/t.jsonl" --blocks "$tmp/b.jsonl" --policy knowledge-tree,best --timed 500
