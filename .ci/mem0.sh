#!/usr/bin/env bash
# Mem0's own Python client, as it is, against the program as it is: "ragpilot serve --memory-dir", with a key. RAGPILOT_BIN
# names a program to try in place of the one built here. Then package memory/mem0 against the memory of Mem0's package.
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d) server="" theirs=""
trap 'for id in $server $theirs; do kill "$id" 2>/dev/null || true; done; rm -rf "$tmp"' EXIT

python=$(.ci/venv.sh mem0 .ci/mem0/requirements.txt)
bin=${RAGPILOT_BIN:-$tmp/ragpilot}
[[ -n ${RAGPILOT_BIN:-} ]] || CGO_ENABLED=0 go build -o "$bin" ./cmd/ragpilot
printf 'listen: 127.0.0.1:0\nadmin_addr: ""\nmemory:\n  dir: %s\n  embedder: lexical\nkeys:\n  - key: a-key-of-mem0\n    tenant: one\n' "$tmp/memories" >"$tmp/ragpilot.yaml"
: >"$tmp/log"
"$bin" serve --config "$tmp/ragpilot.yaml" >"$tmp/log" 2>&1 &
server=$!
for _ in $(seq 100); do
	address=$(grep -oE '127\.0\.0\.1:[0-9]+' "$tmp/log" | head -1) && break
	sleep 0.1
done
if [[ -z ${address:-} ]]; then
	cat "$tmp/log"
	exit 1
fi
code=0
"$python" .ci/mem0/client.py "http://$address" a-key-of-mem0 2>"$tmp/stderr" || code=$?
if ((code != 0)); then
	cat "$tmp/stderr" "$tmp/log"
	exit "$code"
fi

mkdir "$tmp/theirs"
: >"$tmp/theirs.out"
"$python" .ci/mem0/server.py "$tmp/theirs" >"$tmp/theirs.out" 2>"$tmp/theirs.log" &
theirs=$!
for _ in $(seq 600); do
	if grep -q '^http' "$tmp/theirs.out" || ! kill -0 "$theirs" 2>/dev/null; then break; fi
	sleep 0.1
done
if ! grep -q '^http' "$tmp/theirs.out" || ! RAGPILOT_MEM0_SERVER=$(cat "$tmp/theirs.out") \
	go test -count=1 -run '^TestPublishedPackage$' ./memory/mem0; then
	cat "$tmp/theirs.log"
	exit 1
fi
echo "ok package memory/mem0 against mem0ai's own memory"
