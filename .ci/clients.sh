#!/usr/bin/env bash
# Request bodies of real clients with a planted fault each, and thousands without one (.ci/clients/doc.go): the labels are checked against the
# bodies, and what finds faults in prompts is checked against the labels. Programs that keep tools in maps ask llama.cpp's server, too
# (.ci/llamacpp/server.sh), and the share of their prompts that is in its cache is shown. RAGPILOT_LLAMA_SERVER and RAGPILOT_LLAMA_MODEL name others.
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
log=$tmp/log
export CGO_ENABLED=0
offline='dial tcp|no such host|proxyconnect|Forbidden|i/o timeout|connection refused|GOPROXY=off'

if ! go -C .ci/clients build ./... >"$log" 2>&1; then
	tail -20 "$log"
	if grep -qE "$offline" "$log"; then
		echo "not run: clients (their modules cannot be downloaded, see above)"
		exit 77
	fi
	exit 1
fi
go -C .ci/clients mod tidy -diff

# prepare_engine names a server that is there, and a tiny model.
prepare_engine() {
	local code=0 server
	server=$(.ci/llamacpp/server.sh) || code=$?
	if ((code == 77)); then
		echo "not run: shares of the cache (no llama-server, see above)"
	elif ((code != 0)); then
		exit "$code"
	elif [[ -z ${RAGPILOT_LLAMA_MODEL:-} ]] && ! python3 .ci/llamacpp/tiny_gguf.py "$tmp/tiny.gguf"; then
		echo "not run: shares of the cache (no model, see above)"
	else
		RAGPILOT_LLAMA_MODEL=$(realpath "${RAGPILOT_LLAMA_MODEL:-$tmp/tiny.gguf}") RAGPILOT_LLAMA_SERVER=$server
		export RAGPILOT_LLAMA_SERVER RAGPILOT_LLAMA_MODEL
		return
	fi
	unset RAGPILOT_LLAMA_SERVER RAGPILOT_LLAMA_MODEL
}

prepare_engine
code=0
go -C .ci/clients test -count=1 -v -timeout 8m ./... >"$log" 2>&1 || code=$?
# "--- PASS: TestLabels (1.4s)" becomes "ok      Labels (1.4s)"; what tests log is shown below.
sed -nE 's/^ *--- PASS: Test/ok      /p; s/^ *--- FAIL: Test/FAILED  /p; s/^ +[a-z_]+_test\.go:[0-9]+: /        /p' "$log"
if ((code != 0)) && ! grep -qE '^ *--- FAIL' "$log"; then cat "$log"; fi
exit "$code"
