#!/usr/bin/env bash
# Request bodies of real clients with a planted fault each, and thousands without one (.ci/clients/doc.go): the labels are checked against the
# bodies, and what finds faults in prompts is checked against the labels.
set -euo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
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
code=0
go -C .ci/clients test -count=1 -v -timeout 8m ./... >"$log" 2>&1 || code=$?
# "--- PASS: TestLabels (1.4s)" becomes "ok      Labels (1.4s)"; what tests log is shown below.
sed -nE 's/^ *--- PASS: Test/ok      /p; s/^ *--- FAIL: Test/FAILED  /p; s/^ *--- SKIP: Test/not run /p; s/^ +[a-z_]+_test\.go:[0-9]+: /        /p' "$log"
if ((code != 0)) && ! grep -qE '^ *--- FAIL' "$log"; then cat "$log"; fi
exit "$code"
