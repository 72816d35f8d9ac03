#!/usr/bin/env bash
# The race detector over the packages where goroutines meet: those whose code starts some, or guards what several may use, if they, their tests
# or a conformance test start any. The step "clone" runs all tests without it, and "long" all with it: what only measures, and what starts whole programs or a browser,
# is left to that.
# Then every index of contextpilot beside a slow one that is obviously right.
# RAGPILOT_LONG=1 takes all packages and no -short.
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
go build -C .ci/tools -o "$tmp/testreport" ./testreport
short=-short
if [[ ${RAGPILOT_LONG:-} == 1 ]]; then short=-short=false; fi

# Real models compute without goroutines of ours but in internal/nn: they would take minutes here.
export RAGPILOT_MODELS=$tmp/models
# Each of many programs would wait for a second before it ends.
export GORACE=atexit_sleep_ms=100
beside=$(.ci/beside.sh)
eval "$beside"
if ! command -v "$(go env CC)" >/dev/null; then
	echo "not run: race detector (no C compiler $(go env CC))"
	exit 77
fi

mapfile -t packages < <(git grep -lE '^\s*go |\.Go\(|\bsync\.|\batomic\.|net\.Listen' -- '*.go' ':!*_test.go' ':!adapters' ':!.ci' ':!cmd' ':!examples' \
	':!internal/lab' ':!internal/sidecar/dashboard' ':!internal/testkit' | xargs -n1 dirname | sort -u |
	while read -r dir; do
		if compgen -G "$dir/*_test.go" >/dev/null && grep -qE '^\s*go |\.Go\(|net\.Listen|httptest\.New|t\.Parallel|[a-z]test\.Run' "$dir"/*.go; then echo "./$dir"; fi
	done)
if [[ ${RAGPILOT_LONG:-} == 1 ]]; then packages=(./...); fi
if [[ -n ${RAGPILOT_CHANGED:-} ]]; then
	mapfile -t packages < <(comm -12 <(printf '%s\n' "${packages[@]}" | sort) <(tr ' ' '\n' <<<"$RAGPILOT_PACKAGES" | sort))
	if ((${#packages[@]} == 0)); then
		echo "no package with goroutines is concerned"
		exit 0
	fi
fi
# SQLite is C in Go: the race detector finds nothing of ours within it, and makes it seven times slower. Other modules are compiled
# with it: where it does not see their atomic operations, it reports races that are none. The step "lint" has vet.
flags=(-race '-gcflags=modernc.org/...=-race=0 -dwarf=false')
export CGO_ENABLED=1
GOGC=400 go list -export -deps -test "${flags[@]}" "${packages[@]}" >/dev/null # compiles: the compiler collects less garbage
go test -json -timeout 40m $short "${flags[@]}" "${packages[@]}" 2>"$tmp/stderr" |
	"$tmp/testreport" -forbid-skip "$RAGPILOT_FORBID_SKIP" || { cat "$tmp/stderr" && exit 1; }
export CGO_ENABLED=0
if [[ -z ${RAGPILOT_CHANGED:-} || " ${packages[*]} " == *" ./contextpilot "* ]]; then
	# Without the longest conversations and questions: they take the slow index ten minutes each, as it grows with the square.
	go test -json -timeout 40m $short -tags invariants -skip '^(TestManyTurns|TestManyBlocks|TestLongQuestions)$' \
		./contextpilot/internal/tree ./contextpilot 2>"$tmp/stderr" | "$tmp/testreport" || { cat "$tmp/stderr" && exit 1; }
fi
