#!/usr/bin/env bash
# Time to the first token of a prompt of about 4,000 tokens with the local engine: computed, from memory, and from files after a restart.
# Needs curl, python3 and the model smollm2. The machine should have nothing else to do.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
server=
other=
trap 'kill $server $other 2>/dev/null; umount "$work/full" 2>/dev/null; rm -rf "$work"' EXIT
CGO_ENABLED=0 go build -o "$work/ragpilot" ./cmd/ragpilot
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
# pair prints the ratio of two servers' times to the first token over short prompts, asked in turn: with files to without.
pair() { # name, files' flags
	"$work/ragpilot" engine serve --threads 1 --listen 127.0.0.1:18732 --cache-bytes $((64 << 20)) "${@:2}" >"$work/log2" 2>&1 &
	other=$!
	start --cache-bytes $((64 << 20))
	for _ in $(seq 100); do curl -sf http://127.0.0.1:18732/health >/dev/null && break; sleep 0.1; done
	python3 - "$1" "http://$address" http://127.0.0.1:18732 <<'PY'
import json, statistics, sys, time, urllib.request
def ask(base, n):
    body = {"messages": [{"role": "user", "content": f"{n}, say one word about a harbour at night in winter, and nothing else."}], "max_tokens": 1}
    start = time.perf_counter()
    urllib.request.urlopen(urllib.request.Request(base + "/v1/chat/completions", json.dumps(body).encode())).read()
    return time.perf_counter() - start
for n in range(10):
    for base in sys.argv[2:]:
        ask(base, f"warm {n}")
without, files = [], []
for n in range(300):
    sides = [(sys.argv[2], without), (sys.argv[3], files)]
    for base, out in sides if n % 2 else sides[::-1]:
        out.append(ask(base, n))
ratio = statistics.median(f / w for f, w in zip(files, without))
print(f"{sys.argv[1]}: median {statistics.median(without)*1000:.1f} ms without files, {statistics.median(files)*1000:.1f} with; mean "
      f"{statistics.mean(without)*1000:.1f} and {statistics.mean(files)*1000:.1f}; median of the pairs' ratios {ratio:.3f}")
PY
	stop
	kill "$other"
	wait "$other" || true
}
pair "short prompts" --cache-dir "$work/short"
mkdir "$work/full"
if mount -t tmpfs -o size=8m,mode=700 tmpfs "$work/full" 2>/dev/null; then
	pair "short prompts, full disk" --cache-dir "$work/full"
	umount "$work/full"
else
	echo "not run: a full disk (no right to mount one)"
fi
pair "short prompts, quota full" --cache-dir "$work/quota" --cache-disk $((8 << 20))

# contexts asks 60 questions about eight contexts of some 1,000 tokens in turn. Memory has room for two.
contexts() { # name
	python3 - "$1" "http://$address" <<'PY'
import json, random, statistics, sys, time, urllib.request
words = "tide harbour lamp boat keeper oil horn fog stair bell rope chart wind gate canal lock water barge fee winter".split()
def ask(n, question):
    r = random.Random(n)
    context = " ".join(r.choice(words) for _ in range(940))
    body = {"messages": [{"role": "system", "content": context}, {"role": "user", "content": question}], "max_tokens": 1, "stream": True, "stream_options": {"include_usage": True}}
    start, first, usage = time.perf_counter(), None, {}
    for line in urllib.request.urlopen(urllib.request.Request(sys.argv[2] + "/v1/chat/completions", json.dumps(body).encode())):
        if line.startswith(b"data: {"):
            first = first or time.perf_counter() - start
            usage = json.loads(line[6:]).get("usage") or usage
    return first, usage["prompt_tokens"], (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
if sys.argv[1] == "first":
    for n in range(8):
        ask(n, "What is a tide?")
    sys.exit()
all = [ask(i % 8, f"Question {i}: where is the lamp?") for i in range(60)]
print(f"60 requests, {sys.argv[1]}: mean {statistics.mean(a[0] for a in all):.3f} s, longest {max(a[0] for a in all):.3f} s, "
      f"{sum(a[1] - a[2] for a in all)} of {sum(a[1] for a in all)} prompt tokens computed")
PY
}
memory=$((2 * 1040 * 46080))
for files in "" "$work/contexts"; do
	flags=(--cache-bytes $memory)
	[ -z "$files" ] || flags+=(--cache-dir "$files")
	start "${flags[@]}"
	contexts first
	stop
	start "${flags[@]}"
	if [ -z "$files" ]; then contexts "no files"; else contexts "files"; fi
	stop
done
