#!/usr/bin/env bash
# What needs the sentence model: its own tests, and memories by meaning in the library, in serve and in the MCP server. The model is
# fetched once (83 MB) into the user's cache folder, unless RAGPILOT_MINILM names one that has it.
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
CGO_ENABLED=0 go build -o "$tmp/ragpilot" ./cmd/ragpilot
go build -C .ci/tools -o "$tmp/testreport" ./testreport
if ! model=$("$tmp/ragpilot" model path minilm 2>/dev/null) && ! model=$("$tmp/ragpilot" model pull minilm 2>"$tmp/error"); then
	cat "$tmp/error"
	if grep -qE 'no program to fetch|cannot be reached' "$tmp/error"; then
		echo "not run: what needs the sentence model (see above)"
		exit 77
	fi
	exit 1
fi
echo "model: $model"
export RAGPILOT_MINILM=$model CGO_ENABLED=0
report() { "$tmp/testreport" -forbid-skip RAGPILOT_MINILM; }
go test -json -count=1 -timeout 15m ./embed/minilm ./memory | report
# Of these only the tests that ask for the model themselves: the step "clone" runs the others.
packages=(./memory ./internal/lab/membench ./internal/sidecar)
tests=$(for package in "${packages[@]}"; do
	awk '/^func / { name = $2; sub(/\(.*/, "", name) } /minilmtest\.[A-Z]/ { print name }' "$package"/*_test.go
done | sort -u | paste -sd'|')
go test -json -count=1 -timeout 15m -run "^($tests)\$" "${packages[@]}" | report
(cd adapters/mcp && go test -json -count=1 ./cmd/... | report)
