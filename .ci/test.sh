#!/usr/bin/env bash
# All tests with the race detector. Coverage is not measured here: under the race detector its counters make tests take four times as long.
# Tests of pages meet a real browser, and those of events libzmq, where these can be had.
# Where ../shared exists, tests that need it must run: they fail instead of skipping, and a skip that names it fails here.
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
go test -C .ci/tools ./... # of these scripts themselves
go build -C .ci/tools -o "$tmp/testreport" ./testreport

# Tests of real models run in the step "local", with vector instructions: without them, and where the model is in the cache folder, they would
# take ten minutes here.
export RAGPILOT_MODELS=$tmp/models

forbid=""
if [[ -d ../shared ]]; then
	export RAGPILOT_REQUIRE_SHARED=1
	forbid="../shared"
else
	echo "not run: tests on recorded data (no ../shared beside the repository)"
fi
RAGPILOT_REDIS_SERVER=$(.ci/redis.sh) || (($? == 77))
export RAGPILOT_REDIS_SERVER
CHROMIUM=$(.ci/chromium.sh) || (($? == 77))
if [[ -n $CHROMIUM ]]; then export CHROMIUM RAGPILOT_REQUIRE_BROWSER=1; fi
RAGPILOT_PYZMQ=$(.ci/venv.sh zmq .ci/zmq/requirements.txt) || (($? == 77))
export RAGPILOT_PYZMQ
# SQLite is C in Go: the race detector finds nothing of ours within it, and makes it seven times slower.
race=(-race '-gcflags=modernc.org/...=-race=0')
export CGO_ENABLED=1
if ! command -v "$(go env CC)" >/dev/null; then
	echo "not run: race detector (no C compiler $(go env CC)); tests run without it"
	race=() CGO_ENABLED=0
fi

# The status of go test is in its output: testreport fails where a test, a build or the run itself failed.
run() { go test -json -timeout 20m "$@" 2>"$tmp/stderr" | "$tmp/testreport" -forbid-skip "$forbid" "${list[@]}" || { cat "$tmp/stderr" && return 1; }; }

# What only measures, or has hardly more than one goroutine at work, is skipped under the race detector and runs afterwards without it.
list=(-again "needs a run without the race detector" -list "$tmp/again")
run -vet=off "${race[@]}" ./... # the step "lint" has vet
list=()
if [[ -s $tmp/again ]]; then
	names=$(cut -d' ' -f2 "$tmp/again" | sort -u | paste -sd'|')
	mapfile -t packages < <(cut -d' ' -f1 "$tmp/again" | sort -u)
	CGO_ENABLED=0 run -vet=off -run "^($names)\$" "${packages[@]}"
fi
# Every index beside a slow one that is obviously right: the first difference ends the test.
# Without the longest conversations and questions: they take the slow index ten minutes each, as it grows with the square.
CGO_ENABLED=0 run -tags invariants -skip '^(TestManyTurns|TestManyBlocks|TestLongQuestions)$' ./contextpilot/internal/tree ./contextpilot
