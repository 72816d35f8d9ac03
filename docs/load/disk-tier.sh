#!/usr/bin/env bash
# Time to the first token of a prompt of about 4,000 tokens with the local engine: computed, from memory, and from files after a restart.
# Needs curl, python3 and the model smollm2. The machine should have nothing else to do.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$work"' EXIT
GOEXPERIMENT=simd CGO_ENABLED=0 go build -o "$work/ragpilot" ./cmd/ragpilot
address=127.0.0.1:18731
rounds=${ROUNDS:-3}

start() { # flags
	"$work/ragpilot" engine serve --threads 1 --cache-bytes $((1 << 30)) --listen $address "$@" >"$work/log" 2>&1 &
	server=$!
	for _ in $(seq 100); do curl -sf "http://$address/health" >/dev/null && return; sleep 0.1; done
	cat "$work/log"
	return 1
}
stop() {
	kill "$server"
	wait "$server" || true
	server=
}
# ask prints the time to the first token in seconds, and the tokens cached of those of the prompt.
ask() { # seed of the context, question
	python3 - "$1" "$2" >"$work/body" <<'PY'
import json, random, sys
words = "tide harbour lamp boat keeper oil horn fog stair bell rope chart wind gate canal lock water barge fee winter".split()
r = random.Random(int(sys.argv[1]))
context = " ".join(r.choice(words) for _ in range(3700))
print(json.dumps({"messages": [{"role": "system", "content": context}, {"role": "user", "content": sys.argv[2]}],
                  "max_tokens": 1, "stream": True, "stream_options": {"include_usage": True}}))
PY
	curl -s -o "$work/answer" -w '%{time_starttransfer}' "http://$address/v1/chat/completions" -d @"$work/body"
	python3 - "$work/answer" <<'PY'
import json, sys
for line in open(sys.argv[1]):
    if line.startswith("data: {"):
        usage = json.loads(line[6:]).get("usage") or {}
        if usage:
            print("  cached", (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0), "of", usage["prompt_tokens"])
PY
}

lscpu | sed -n 's/^Model name: */processor: /p'
for i in $(seq "$rounds"); do
	start
	echo "round $i, no files, cold:   $(ask "$i" "What is a tide?")"
	stop
	start --cache-dir "$work/kv"
	echo "round $i, files, cold:      $(ask "$i" "What is a tide?")"
	echo "round $i, in memory:        $(ask "$i" "What is a harbour?")"
	stop
	start --cache-dir "$work/kv"
	echo "round $i, after a restart:  $(ask "$i" "What is a lamp?")"
	stop
done
short() { # seed: mean time to the first token of 20 different prompts of some 40 tokens
	for n in $(seq 20); do
		curl -s -o /dev/null -w '%{time_starttransfer}\n' "http://$address/v1/chat/completions" \
			-d '{"messages":[{"role":"user","content":"'"$1 $n"', say one word about a harbour at night in winter, and nothing else."}],"max_tokens":1}'
	done | awk '{ s += $1 } END { printf "%.4f\n", s / NR }'
}
for i in $(seq "$rounds"); do
	start
	echo "short prompts $i, no files: $(short "a$i")"
	stop
	start --cache-dir "$work/kv"
	echo "short prompts $i, files:    $(short "b$i")"
	stop
done
