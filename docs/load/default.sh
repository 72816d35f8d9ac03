#!/usr/bin/env bash
# Whether the default harms the answers of SmolLM2-135M-Instruct: 4,000 generated questions, for docs/quality.md. It takes some 70 minutes on two
# cores; it may be interrupted, even killed, and goes on from where it was. docs/load/default keeps the rows; .cache/default has them while it
# runs.
set -euo pipefail
cd "$(dirname "$0")/../.."
kept=docs/load/default work=.cache/default
mkdir -p "$work" "$kept"
if [[ ! -s $work/outcomes.jsonl && -f $kept/outcomes.jsonl.gz ]]; then
	gunzip <"$kept/outcomes.jsonl.gz" >"$work/outcomes.new"
	mv "$work/outcomes.new" "$work/outcomes.jsonl"
fi
CGO_ENABLED=0 go build -o "$work/ragpilot" ./cmd/ragpilot
"$work/ragpilot" eval --engine local --generate 4000 --k 5 --seed 2411 --max-tokens 24 --parallel 2 --arms plain,default --out "$work" --resume
gzip -9n <"$work/outcomes.jsonl" >"$work/outcomes.jsonl.gz"
mv "$work/outcomes.jsonl.gz" "$kept/"
cp "$work/report.txt" "$work/report.json" "$work/quality.svg" "$kept/"
