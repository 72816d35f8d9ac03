#!/usr/bin/env bash
# Runs every program under examples/. Where expected.txt stands beside it, the output must be that.
set -euo pipefail
cd "$(dirname "$0")/.."

ran=0
for main in examples/*/main.go; do
	[[ -f $main ]] || { echo "no examples" && exit 1; }
	dir=${main%/main.go}
	echo "== $dir"
	if [[ -f $dir/expected.txt ]]; then
		go run "./$dir" </dev/null | diff "$dir/expected.txt" -
	else
		go run "./$dir" </dev/null
	fi
	ran=$((ran + 1))
done
echo "$ran examples ran"
