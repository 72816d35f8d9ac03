#!/usr/bin/env bash
# The local engine with a real model: its tests with vector instructions, and the demonstration with figures. The model is fetched once
# (98 MB) into the user's cache folder, or RAGPILOT_MODELS.
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

missing() {
	echo "not run: local engine with a real model ($1)"
	exit 77
}

[[ $(go env GOARCH) == amd64 ]] || missing "Go has vector instructions for amd64 only"
GOEXPERIMENT=simd go list simd/archsimd >/dev/null 2>&1 || missing "this toolchain has no GOEXPERIMENT=simd"
export GOEXPERIMENT=simd CGO_ENABLED=0
go build -o "$tmp/ragpilot" ./cmd/ragpilot
go build -C .ci/tools -o "$tmp/testreport" ./testreport
if ! model=$("$tmp/ragpilot" model pull smollm2 2>"$tmp/error"); then
	cat "$tmp/error"
	grep -qE 'no program to fetch|cannot be reached' "$tmp/error" && missing "no model, see above"
	exit 1
fi
echo "model: $model"

RAGPILOT_SMOLLM2=$model go test -json -count=1 -timeout 15m ./internal/compute ./internal/quant ./engines/local/... | "$tmp/testreport" -forbid-skip RAGPILOT_SMOLLM2

# The demonstration: real answers, and at most 0.6 of the prompt tokens. Times are shown and not judged: this machine may be busy.
"$tmp/ragpilot" demo --engine local --model "$model" --out "$tmp/demo.html" 2>"$tmp/progress" >"$tmp/demo.txt" || { cat "$tmp/progress"; exit 1; }
grep -E '^(engine|  with:|computed prompt|mean TTFT|Saving)' "$tmp/demo.txt"
awk '/^Saving:/ { found = 1; if ($2 < 40) { print "the demonstration saves less than 40 %"; exit 1 } } END { if (!found) { print "no saving is reported"; exit 1 } }' "$tmp/demo.txt"

# The evaluation of answers, on so few rows that its verdict says nothing: that every row is answered and scored in both arms.
"$tmp/ragpilot" eval --engine local --model "$model" --generate 100 --arms plain,default --out "$tmp/eval" 2>"$tmp/progress" >"$tmp/report.txt" || { cat "$tmp/progress"; exit 1; }
cat "$tmp/report.txt"
rows=$(grep -c '^{"row"' "$tmp/eval/outcomes.jsonl")
((rows == 100)) || { echo "$rows of 100 rows have an outcome"; exit 1; }
