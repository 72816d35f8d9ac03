#!/usr/bin/env bash
# Tests and lints the adapters for other frameworks, each of which is a module of its own, so that nobody downloads one
# framework for another. Their examples are tests.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=$(.ci/tools.sh)
config=$PWD/.golangci.yml race=() fast=(--fast-only) # linters that need the types of all that is imported are left to the step "long"
if [[ ${RAGPILOT_LONG:-} == 1 ]]; then # as in the step "race"
	fast=()
	race=(-race '-gcflags=modernc.org/...=-race=0 -dwarf=false')
	export CGO_ENABLED=1
fi
for mod in adapters/*/go.mod; do
	dir=${mod%/go.mod}
	echo "== $dir"
	(
		cd "$dir"
		go mod tidy -diff
		GOGC=400 go list -export -deps -test "${race[@]}" ./... >/dev/null # compiles, as in the step "race"
		"$bin/golangci-lint" run -c "$config" "${fast[@]}" ./...
		"$bin/golangci-lint" fmt -c "$config" --diff ./...
		go test "${race[@]}" ./...
		[[ -f doc.go ]] || { echo "$dir lacks doc.go" && exit 1; }
		grep -qs '^func Example' -- *_test.go || { echo "$dir lacks an Example" && exit 1; }
	)
done
