#!/usr/bin/env bash
# Policies on the open traces, scored by the independent judge: the default one and the best, and all of them in the step "long". "--write"
# updates docs/results.md.
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
if (($# == 0)) && [[ ${RAGPILOT_LONG:-} != 1 ]]; then set -- --short; fi
python3 .ci/judge.py "$tmp/ragpilot" ../shared "$@"
