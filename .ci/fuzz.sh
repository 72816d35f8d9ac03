#!/usr/bin/env bash
# Runs every fuzz target for FUZZTIME (4,000 inputs), one after the other, and starts none after FUZZ_TOTAL
# seconds (60). Each day begins with another one, so that all get their turn; the step "long" runs all.
# A number of inputs and not a time: up to Go 1.26 a target may fail when its time is up (golang/go#75804).
# A failing input is written to the package's testdata/fuzz: commit it with the fix.
set -euo pipefail
cd "$(dirname "$0")/.."

# Read from the sources: "go test -list" would build the tests of all packages.
targets=$(git ls-files '*_test.go' ':!.ci' ':!adapters' | xargs grep -HoE '^func Fuzz[A-Za-z0-9_]*' | sed -E 's#^([^:]*)/[^/:]*:func (.*)#./\1 \2#' | sort)
first=$(($(date +%s) / 86400 * 23 % ($(wc -l <<<"$targets") + 1)))
targets=$(tail -n +$((first + 1)) <<<"$targets" && head -n $first <<<"$targets")
ran=0 failed=0 left=0 start=$SECONDS
while read -r pkg name; do
	[[ -n $pkg ]] || continue
	if ((SECONDS - start >= ${FUZZ_TOTAL:-60})); then
		echo "left: $name in $pkg"
		left=$((left + 1))
		continue
	fi
	echo "$pkg $name"
	# Minimizing inputs that are merely new would eat the time.
	if out=$(go test -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-4000x}" -fuzzminimizetime 5x "$pkg" 2>&1 </dev/null); then
		tail -n 3 <<<"$out"
	else
		echo "$out"
		failed=$((failed + 1))
	fi
	ran=$((ran + 1))
done <<<"$targets"
echo "fuzzed $ran targets, $failed failed, $left not run"
if ((left > 0)); then echo "left to the step long: $left of $((ran + left)) fuzz targets (the ${FUZZ_TOTAL:-60} s for fuzzing are used up; each day begins with another target)"; fi
((failed == 0)) || exit 1
((ran > 0)) || { echo "no fuzz target found" && exit 1; }
