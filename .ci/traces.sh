#!/usr/bin/env bash
# No text of the traces is in the repository.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ! -d ../shared/traces ]]; then
	echo "not run: traces (no ../shared/traces beside the repository)"
	exit 77
fi
if ! command -v python3 >/dev/null; then
	echo "not run: traces (no python3)"
	exit 77
fi
python3 .ci/traces.py ../shared
