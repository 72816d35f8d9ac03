#!/usr/bin/env bash
# Mem0's own Python client, as it is, against the program as it is: "ragpilot serve --memory-dir", with a key. RAGPILOT_BIN
# names a program to try in place of the one built here. Then package memory/mem0 against the memory of Mem0's package.
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d) server="" theirs=""
trap 'for id in $server $theirs; do kill "$id" 2>/dev/null || true; done; rm -rf "$tmp"' EXIT

if ! command -v python3 >/dev/null || ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
	echo "not run: no python3 of version 3.10 or later"
	exit 77
fi
key=$({ python3 -VV; cat .ci/mem0/requirements.txt; } | git hash-object --stdin)
venv=${XDG_CACHE_HOME:-$HOME/.cache}/ragpilot-ci/mem0-python-${key:0:16}
if [[ ! -x $venv/bin/python ]]; then
	start=$SECONDS
	mkdir -p "${venv%/*}"
	part=$(mktemp -d "$venv.XXXXXX") # renamed when complete: two runs at once do not meet
	if ! { python3 -m venv "$part" && "$part/bin/python" -m pip install --quiet --no-input --disable-pip-version-check --retries 1 \
		--timeout 20 --only-binary :all: -r .ci/mem0/requirements.txt; } >"$tmp/pip" 2>&1; then
		tail -20 "$tmp/pip"
		rm -rf "$part"
		if grep -qE 'NewConnectionError|ProxyError|Retrying \(|Connection to .* timed out|returned non-zero exit status' "$tmp/pip"; then
			echo "not run: Mem0's client cannot be installed (see above)"
			exit 77
		fi
		exit 1
	fi
	[[ -e $venv ]] || mv "$part" "$venv"
	rm -rf "$part"
	echo "Python: cold, installed in $((SECONDS - start)) s"
fi

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
"$venv/bin/python" .ci/mem0/client.py "http://$address" a-key-of-mem0 2>"$tmp/stderr" || code=$?
if ((code != 0)); then
	cat "$tmp/stderr" "$tmp/log"
	exit "$code"
fi

mkdir "$tmp/theirs"
: >"$tmp/theirs.out"
"$venv/bin/python" .ci/mem0/server.py "$tmp/theirs" >"$tmp/theirs.out" 2>"$tmp/theirs.log" &
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
