#!/usr/bin/env bash
# An evaluation of answers on the local engine with a real model. The demonstration and the engine's tests are in the step "clone", and those that
# compute for minutes in "long". The model is fetched once (98 MB) into the user's cache folder, or RAGPILOT_MODELS.
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

missing() {
	echo "not run: local engine with a real model ($1)"
	exit 77
}

[[ $(go env GOARCH) == amd64 ]] || missing "vector instructions are used on amd64 only"
export CGO_ENABLED=0
go build -o "$tmp/ragpilot" ./cmd/ragpilot
if ! model=$("$tmp/ragpilot" model pull smollm2 2>"$tmp/error"); then
	cat "$tmp/error"
	grep -qE 'no program to fetch|cannot be reached' "$tmp/error" && missing "no model, see above"
	exit 1
fi
echo "model: $model"

# The evaluation of answers, on so few rows that its verdict says nothing: that every row is answered and scored in both arms.
"$tmp/ragpilot" eval --engine local --model "$model" --generate 16 --arms plain,default --out "$tmp/eval" 2>"$tmp/progress" >"$tmp/report.txt" || { cat "$tmp/progress"; exit 1; }
cat "$tmp/report.txt"
rows=$(grep -c '^{"row"' "$tmp/eval/outcomes.jsonl")
((rows == 16)) || { echo "$rows of 16 rows have an outcome"; exit 1; }
