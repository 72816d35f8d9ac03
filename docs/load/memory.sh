#!/usr/bin/env bash
# Makes the table of docs/memory.md again: a trace of recorded retrieval goes through memories (internal/lab/memorytrace), and the
# judge beside the repository counts what an engine computes of the prompts, as found and as planned.
# usage: docs/load/memory.sh           the table
#        docs/load/memory.sh ttft      times to the first token on two llama-servers, printed; nothing else should run meanwhile
# env: for ttft RAGPILOT_LLAMA_SERVER (the newest that .ci/llamacpp.sh has built), MODEL (a GGUF; a small one with random weights is
# made if it is not given), REQUESTS (150), K (100), SLOTS (32), LIMIT (15m), PORT (the first of two)
set -euo pipefail
cd "$(dirname "$0")/../.."
shared=../shared trace=$shared/traces/memory-locomo-k100
: "${REQUESTS:=150}" "${K:=100}" "${SLOTS:=32}" "${LIMIT:=15m}" "${PORT:=18110}"

if [[ ! -d $trace ]]; then
	echo "not run: memory (no $trace beside the repository)"
	exit 77
fi
for program in python3 curl go; do
	command -v "$program" >/dev/null || { echo "not run: memory (no $program)"; exit 77; }
done
tmp=$(mktemp -d)
servers=()
trap '((${#servers[@]} == 0)) || kill "${servers[@]}" 2>/dev/null || true; rm -rf "$tmp"' EXIT
CGO_ENABLED=0 go build -o "$tmp/measure" ./internal/lab/memorytrace/measure
measure=("$tmp/measure" -trace "$trace/trace.jsonl" -blocks "$trace/blocks.jsonl")

if [[ ${1:-} == ttft ]]; then
	: "${RAGPILOT_LLAMA_SERVER:=$(ls -t "${XDG_CACHE_HOME:-$HOME/.cache}"/ragpilot-ci/llama-server-* 2>/dev/null | head -1)}"
	[[ -x $RAGPILOT_LLAMA_SERVER ]] || { echo "not run: memory (no llama-server: run .ci/llamacpp.sh first)"; exit 77; }
	if [[ -z ${MODEL:-} ]]; then
		MODEL=$tmp/words.gguf
		python3 - "$MODEL" "$trace/blocks.jsonl" <<-'END'
			import sys
			sys.path.insert(0, "docs/load")
			import words_gguf
			words_gguf.HIDDEN, words_gguf.LAYERS, words_gguf.HEADS, words_gguf.FORWARD = 96, 2, 2, 256
			words_gguf.main(sys.argv[1], sys.argv[2:])
		END
	fi
	for port in "$PORT" $((PORT + 1)); do
		"$RAGPILOT_LLAMA_SERVER" -m "$MODEL" --host 127.0.0.1 --port "$port" -t 2 -tb 2 -fa on --parallel "$SLOTS" \
			-c $((SLOTS * 8192)) --no-kv-unified --cache-ram 0 --jinja >"$tmp/$port.log" 2>&1 &
		servers+=($!)
	done
	for port in "$PORT" $((PORT + 1)); do
		curl -sf -o /dev/null --retry 100 --retry-delay 1 --retry-all-errors --retry-max-time 60 "http://127.0.0.1:$port/health"
	done
	"${measure[@]}" -k "$K" -requests "$REQUESTS" -limit "$LIMIT" -plain "http://127.0.0.1:$PORT" -planned "http://127.0.0.1:$((PORT + 1))"
	exit
fi

# judge prints computed tokens per request: unlimited cache, 20 %, 5 %.
judge() { # FOLDER flags...
	python3 "$shared/eval/prefixcache.py" eval --trace "$1/trace.jsonl" --blocks "$1/blocks.jsonl" --mode online \
		--capacity unlimited 20% 5% --json "${@:2}" |
		python3 -c 'import json, sys; print(*(r["computed_per_request"] for r in json.load(sys.stdin)["runs"]))'
}

{
	echo "| memories found by | k | computed per request, as found | as planned | times fewer | 20 % | 5 % |"
	echo "|---|---|---|---|---|---|---|"
	for search in recorded own; do
		for k in 100 20; do
			mkdir -p "$tmp/$search-$k"
			name="the trace's retriever" flags=()
			if [[ $search == own ]]; then name="the store's own search" flags=(-own-search); fi
			"${measure[@]}" -k "$k" "${flags[@]}" -out "$tmp/$search-$k"
			read -r -a plain < <(judge "$tmp/$search-$k")
			read -r -a planned < <(judge "$tmp/$search-$k" --plan "$tmp/$search-$k/plan.jsonl")
			echo "${plain[*]} ${planned[*]}" | awk -v name="$name" -v k="$k" \
				'{ printf "| %s | %s | %.0f | %.0f | **%.2f** | %.2f | %.2f |\n", name, k, $1, $4, $1 / $4, $2 / $5, $3 / $6 }'
		done
	done
} >"$tmp/table"
cat "$tmp/table"
awk -v file="$tmp/table" '
	index($0, "<!-- judged: end -->") { skip = 0 }
	!skip
	index($0, "<!-- judged: begin -->") { skip = 1; while ((getline line < file) > 0) print line }
' docs/memory.md >"$tmp/memory.md"
cat "$tmp/memory.md" >docs/memory.md
