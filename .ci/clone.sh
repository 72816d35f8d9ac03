#!/usr/bin/env bash
# The README's two commands in its order, in a fresh clone of HEAD: the demonstration, and the suite, with the model that the demonstration has
# fetched. This is the suite's one run. Tests meet a real browser, Redis, libzmq and the recorded data of ../shared where these can be had; with
# ../shared here, tests that need it fail instead of skipping. What the README and docs/results.md show of the demonstration is a test of
# internal/lab/demo.
# With --changed, only the tests of the packages concerned, in the work tree.
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
go build -C .ci/tools -o "$tmp/testreport" ./testreport
beside=$(.ci/beside.sh)
eval "$beside"

# suite runs "make test". Its status is in its output: testreport fails where a test, a build or the run itself failed.
suite() {
	make --silent --no-print-directory test TESTFLAGS=-json "$@" 2>"$tmp/stderr" |
		"$tmp/testreport" -forbid-skip "$RAGPILOT_FORBID_SKIP" || { cat "$tmp/stderr" && return 1; }
}

if [[ -n ${RAGPILOT_CHANGED:-} ]]; then
	if [[ -z $RAGPILOT_PACKAGES ]]; then
		echo "no package is concerned"
		exit 0
	fi
	suite PACKAGES="$RAGPILOT_PACKAGES"
	exit
fi
if [[ -n $(git status --porcelain) ]]; then
	echo "note: the work tree differs from HEAD; what is tested here is HEAD $(git rev-parse --short HEAD)"
fi
git clone --quiet --no-hardlinks . "$tmp/ragpilot"
if [[ -d ../shared ]]; then ln -s "$(realpath ../shared)" "$tmp/shared"; fi
cd "$tmp/ragpilot"

start=$SECONDS
if ! make --no-print-directory demo >"$tmp/demo" 2>"$tmp/stderr"; then
	cat "$tmp/demo" "$tmp/stderr"
	echo "make demo failed in a fresh clone"
	exit 1
fi
if grep -q '^engine: local SmolLM2' "$tmp/demo"; then
	# At most 0.6 of the prompt tokens, at least 5 of 6 answers right on both sides, and no sentence twice in an answer. Times are shown and not
	# judged: this machine may be busy.
	grep -E '^(engine|computed prompt|mean TTFT|Saving|With.* right answers)' "$tmp/demo"
	awk '
		function bad(text) { print "the demonstration " text; failed = 1 }
		/^Saving:/ { savings++; if ($2 < 40) bad("saves less than 40 %") }
		/^With.* right answers: / { sides++; of = $NF + 0; right = $(NF - 2); if (of < 6 || 6 * right < 5 * of) bad("has too few right answers: " $0) }
		/^  (without|with,).*(right|wrong): / {
			answers++
			text = $0
			sub(/^[^:]*: /, "", text)
			n = split(tolower(text), sentences, /[.!?]+( |$)/)
			for (i = 1; i <= n; i++) if (sentences[i] != "" && seen[answers, sentences[i]]++) bad("says a sentence twice: " text)
		}
		END { if (savings != 1 || sides != 2 || answers < 12) bad("reports too little"); exit failed }
	' "$tmp/demo"
else
	grep '^engine' "$tmp/demo" || true
	echo "not run: the demonstration with a real model (see above)"
fi
echo "make demo: ok in $((SECONDS - start)) s"
start=$SECONDS
suite
echo "make test: ok in $((SECONDS - start)) s"
if [[ -n $(git status --porcelain) ]]; then
	printf 'the commands left files that git does not ignore:\n%s\n' "$(git status --porcelain)"
	exit 1
fi
