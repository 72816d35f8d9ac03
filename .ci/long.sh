#!/usr/bin/env bash
# What takes minutes and wants the machine for itself: processes that are killed and flooded, streams that push each other out of a
# small cache, a soak of 100,000 requests. It is not part of ".ci/run" without arguments.
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
go build -C .ci/tools -o "$tmp/testreport" ./testreport
RAGPILOT_REDIS_SERVER=$(.ci/redis.sh) || (($? == 77))
export RAGPILOT_REDIS_SERVER RAGPILOT_FAULTS=1

# The status of go test is in its output: testreport fails where a test, a build or the run itself failed.
run() { go test -json -count=1 -timeout 30m "$@" 2>"$tmp/stderr" | "$tmp/testreport" || { cat "$tmp/stderr" && return 1; }; }

# The programs are built without the race detector, so the tests need none.
CGO_ENABLED=0 run ./internal/testkit/faulttest
CGO_ENABLED=0 run -run Killed ./engines/local ./engines/local/internal/kvfile
if command -v "$(go env CC)" >/dev/null; then
	CGO_ENABLED=1 run -race -run TestStreams ./engines/local
else
	echo "not run: the race detector in TestStreams (no C compiler $(go env CC))"
	CGO_ENABLED=0 run -run TestStreams ./engines/local
fi
CGO_ENABLED=0 RAGPILOT_SOAK=100000 run -run Soak ./internal/sidecar
# The slow index beside long conversations and questions; the step "test" has the short ones.
CGO_ENABLED=0 run -tags invariants -run '^(TestManyBlocks|TestLongQuestions)$' ./contextpilot
