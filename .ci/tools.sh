#!/usr/bin/env bash
# Builds the tools of .ci/tools/go.mod, once per version of them and of Go, and prints the directory they are in.
# Progress goes to standard error.
set -euo pipefail
cd "$(dirname "$0")/tools"

key=$({ go version; cat go.mod go.sum; } | git hash-object --stdin)
dir=${XDG_CACHE_HOME:-$HOME/.cache}/ragpilot-ci/${key:0:16}
if [[ -x $dir/golangci-lint && -x $dir/govulncheck && -x $dir/benchstat ]]; then
	echo "tools: warm, 0 s" >&2
else
	mkdir -p "$dir"
	part=$(mktemp -d "$dir/part.XXXXXX") # renamed when complete: two runs at once do not meet
	trap 'rm -rf "$part"' EXIT
	start=$SECONDS
	CGO_ENABLED=0 GOGC=400 go build -o "$part/" tool >&2
	mv -f "$part"/* "$dir/"
	echo "tools: cold, built in $((SECONDS - start)) s" >&2
fi
echo "$dir"
