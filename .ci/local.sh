#!/usr/bin/env bash
# The local engine with a real model: the demonstration with figures, and an evaluation. Its tests are in the step "clone", and those that compute
# for minutes in "long". The model is fetched once (98 MB) into the user's cache folder, or RAGPILOT_MODELS.
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

# The demonstration: at most 0.6 of the prompt tokens, at least 5 of 6 answers right on both sides, and no sentence twice in an answer.
# Times are shown and not judged: this machine may be busy.
"$tmp/ragpilot" demo --engine local --model "$model" --out "$tmp/demo.html" 2>"$tmp/progress" >"$tmp/demo.txt" || { cat "$tmp/progress"; exit 1; }
grep -E '^(engine|computed prompt|mean TTFT|Saving|With.* right answers)' "$tmp/demo.txt"
awk '
	function bad(text) { print "the demonstration " text; failed = 1 }
	/^Saving:/ { savings++; if ($2 < 40) bad("saves less than 40 %") }
	/^With.* right answers: / { sides++; of = $NF + 0; right = $(NF - 2); if (of < 6 || 6 * right < 5 * of) bad("has too few right answers: " $0) }
	/^  (without|with,).*(right|wrong): / {
		answers++
		text = $0
		sub(/^[^:]*: /, "", text)
		n = split(tolower(text), sentences, /[.!?]+( |$)/)
		for (i = 1; i <= n; i++) if (sentences[i] != "" && seen[answers, sentences[i]]++) bad("says a sentence twice: " text)
	}
	END { if (savings != 1 || sides != 2 || answers < 12) bad("reports too little"); exit failed }
' "$tmp/demo.txt"

# The evaluation of answers, on so few rows that its verdict says nothing: that every row is answered and scored in both arms.
"$tmp/ragpilot" eval --engine local --model "$model" --generate 40 --arms plain,default --out "$tmp/eval" 2>"$tmp/progress" >"$tmp/report.txt" || { cat "$tmp/progress"; exit 1; }
cat "$tmp/report.txt"
rows=$(grep -c '^{"row"' "$tmp/eval/outcomes.jsonl")
((rows == 40)) || { echo "$rows of 40 rows have an outcome"; exit 1; }
