#!/usr/bin/env bash
# Runs every fuzz target for FUZZTIME (4,000 inputs), one after the other. The step "clone" runs their seeds; compiling for the first target
# alone takes a minute and a half.
# A number of inputs and not a time: up to Go 1.26 a target may fail when its time is up (golang/go#75804).
# A failing input is written to the package's testdata/fuzz: commit it with the fix.
set -euo pipefail
cd "$(dirname "$0")/.."

# Read from the sources: "go test -list" would build the tests of all packages.
targets=$(git ls-files '*_test.go' ':!.ci' ':!adapters' | xargs grep -HoE '^func Fuzz[A-Za-z0-9_]*' | sed -E 's#^([^:]*)/[^/:]*:func (.*)#./\1 \2#' | sort)
ran=0 failed=0
while read -r pkg name; do
	[[ -n $pkg ]] || continue
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
echo "fuzzed $ran targets, $failed failed"
((failed == 0)) || exit 1
((ran > 0)) || { echo "no fuzz target found" && exit 1; }
