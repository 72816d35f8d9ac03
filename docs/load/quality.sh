#!/usr/bin/env bash
# What layouts do to the answers of SmolLM2-135M-Instruct on 2,000 generated rows, for docs/quality.md. It takes hours on two cores; it may be
# interrupted, even killed, and goes on from where it was. docs/load/quality keeps the rows; .cache/quality has them while it runs.
set -euo pipefail
cd "$(dirname "$0")/../.."
kept=docs/load/quality work=.cache/quality
mkdir -p "$work"
if [[ ! -s $work/outcomes.jsonl && -f $kept/outcomes.jsonl.gz ]]; then
	gunzip <"$kept/outcomes.jsonl.gz" >"$work/outcomes.new"
	mv "$work/outcomes.new" "$work/outcomes.jsonl"
fi
CGO_ENABLED=0 go build -o "$work/ragpilot" ./cmd/ragpilot
"$work/ragpilot" eval --engine local --generate 2000 --k 5 --seed 2 --max-tokens 24 --parallel 3 --arms plain \
	--profile most-reuse --profile "$kept/best-last.json" --profile "$kept/as-retrieved.json" --out "$work" --resume
gzip -9n <"$work/outcomes.jsonl" >"$work/outcomes.jsonl.gz"
mv "$work/outcomes.jsonl.gz" "$kept/"
cp "$work/report.txt" "$work/report.json" "$work/quality.svg" "$kept/"
