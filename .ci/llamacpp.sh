#!/usr/bin/env bash
# engines/llamacpp and what warms its cache against llama.cpp's own server (.ci/llamacpp/server.sh), with a tiny model that is made here
# (.ci/llamacpp/tiny_gguf.py). RAGPILOT_LLAMA_SERVER and RAGPILOT_LLAMA_MODEL name a program and a model to try instead. Slot files are tried
# with SmolLM2, which is fetched once (98 MB) as for the local engine; RAGPILOT_LLAMA_SMOLLM2 names its file.
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d) group="" beside=""
trap 'for g in $group $beside; do kill -- "-$g" 2>/dev/null || true; done; rm -rf "$tmp"' EXIT

# alone runs a command in a process group of its own, and ends what it leaves behind: a test that panics stops no servers.
alone() {
	local code=0
	set -m
	"$@" &
	group=$!
	set +m
	wait "$group" || code=$?
	kill -- "-$group" 2>/dev/null || true
	group=""
	return "$code"
}

RAGPILOT_LLAMA_SERVER=$(.ci/llamacpp/server.sh)
if [[ -z ${RAGPILOT_LLAMA_MODEL:-} ]]; then
	RAGPILOT_LLAMA_MODEL=$tmp/tiny.gguf
	python3 .ci/llamacpp/tiny_gguf.py "$RAGPILOT_LLAMA_MODEL"
fi
for window in 32 512; do
	python3 .ci/llamacpp/tiny_gguf.py "$tmp/window$window.gguf" "$window"
	export "RAGPILOT_LLAMA_WINDOW$window=$tmp/window$window.gguf"
done
RAGPILOT_LLAMA_MODEL=$(realpath "$RAGPILOT_LLAMA_MODEL")
export RAGPILOT_LLAMA_SERVER RAGPILOT_LLAMA_MODEL

# The answers of compressed contexts, and those of many conversations, are compared for minutes: in the step "long", as is the search for races.
short=-short race=()
export CGO_ENABLED=0
if [[ ${RAGPILOT_LONG:-} == 1 ]]; then
	short=-short=false
	if command -v "$(go env CC)" >/dev/null; then race=(-race '-gcflags=modernc.org/...=-race=0 -dwarf=false') CGO_ENABLED=1; fi # as in the step "race"
fi
go build -C .ci/tools -o "$tmp/testreport" ./testreport
forbid=RAGPILOT_LLAMA # no test may skip for want of what these name
if [[ -z ${RAGPILOT_LLAMA_SMOLLM2:-} ]]; then
	go build -o "$tmp/ragpilot" ./cmd/ragpilot
	if ! RAGPILOT_LLAMA_SMOLLM2=$("$tmp/ragpilot" model pull smollm2 2>"$tmp/error"); then
		cat "$tmp/error"
		grep -qE 'no program to fetch|cannot be reached' "$tmp/error" || exit 1
		forbid=RAGPILOT_LLAMA_SERVER
	fi
fi
export RAGPILOT_LLAMA_SMOLLM2
run() { go test -json $short "${race[@]}" -count=1 -timeout 30m -p 1 -run '^TestReal' -skip '^TestRealContext' ./engines ./engines/llamacpp ./internal/lab/doctor ./embed/openai ./batch | tee "$tmp/json" | "$tmp/testreport" -forbid-skip "$forbid"; }
# Compressed contexts are computed in the tests' own process: that takes minutes under the race detector, or without vector instructions.
contexts() {
	CGO_ENABLED=0 go test -json $short -count=1 -timeout 30m -p 1 -run '^TestRealContext' ./engines/llamacpp | tee "$tmp/json-contexts" | "$tmp/testreport" -forbid-skip "$forbid"
}
code=0
# Each half waits for a server that computes on one core.
if [[ $(go env GOARCH) == amd64 ]]; then
	set -m
	contexts >"$tmp/contexts" 2>&1 &
	beside=$!
	set +m
else
	echo "not run: compressed contexts (vector instructions are used on amd64 only)"
fi
alone run || code=$?
if [[ -n $beside ]]; then
	wait "$beside" || code=$?
	kill -- "-$beside" 2>/dev/null || true
	beside=""
	cat "$tmp/contexts"
fi
cat "$tmp"/json-contexts >>"$tmp/json" 2>/dev/null || true
# "ok      PredictionIsExact (9.1 s)"
sed -nE 's/.*"Output":" *real_(disk|context)_test.go:[0-9]+: ((slot files|compressed contexts): [^\\"]*).*/        \2/p' "$tmp/json"
sed -nE 's/.*"Output":"--- PASS: TestReal([^ ]+) \(([0-9.]+)s\).*/ok      \1 (\2 s)/p' "$tmp/json"
exit "$code"
