#!/usr/bin/env bash
# golangci-lint with .golangci.yml: linters with those of go vet, and formatters.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=$(.ci/tools.sh)
if ! out=$("$bin/golangci-lint" config verify 2>&1); then
	echo "$out"
	if grep -q 'invalid elements' <<<"$out"; then exit 1; fi
	echo "not run: check of .golangci.yml against its schema (see above)"
fi
"$bin/golangci-lint" run ./...
