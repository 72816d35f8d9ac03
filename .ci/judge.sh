#!/usr/bin/env bash
# All policies on the open traces, scored by the independent judge. "--write" updates docs/results.md.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ! -d ../shared/traces ]]; then
	echo "not run: judge (no ../shared/traces beside the repository)"
	exit 77
fi
if ! command -v python3 >/dev/null; then
	echo "not run: judge (no python3)"
	exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
CGO_ENABLED=0 go build -o "$tmp/ragpilot" ./cmd/ragpilot
python3 .ci/judge.py "$tmp/ragpilot" ../shared "$@"
