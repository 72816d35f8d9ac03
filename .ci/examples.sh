#!/usr/bin/env bash
# Runs every program under examples/. Where expected.txt stands beside it, the output must be that.
set -euo pipefail
cd "$(dirname "$0")/.."

ran=0
for main in examples/*/main.go; do
	[[ -f $main ]] || { echo "no examples" && exit 1; }
	dir=${main%/main.go}
	echo "== $dir"
	out=$(go run "./$dir" </dev/null)
	if [[ -f $dir/expected.txt ]]; then
		diff "$dir/expected.txt" - <<<"$out"
	else
		echo "$out"
	fi
	ran=$((ran + 1))
done
echo "$ran examples ran"
