#!/usr/bin/env bash
# Formatting, and whether go.mod and go.sum say what the code needs.
set -euo pipefail
cd "$(dirname "$0")/.."

unformatted=$(git ls-files -co --exclude-standard -- '*.go' | while read -r f; do [[ -f $f ]] && echo "$f"; done | xargs -r gofmt -l)
if [[ -n $unformatted ]]; then
	printf 'gofmt would change:\n%s\n' "$unformatted"
	exit 1
fi
go mod verify
go mod tidy -diff
