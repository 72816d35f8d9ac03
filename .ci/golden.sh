#!/usr/bin/env bash
# Rewrites the golden files of every package whose tests define the -update flag.
set -euo pipefail
cd "$(dirname "$0")/.."

dirs=$(git grep -l --untracked -E 'flag\.Bool\("update"' -- '*_test.go' | xargs -r -n 1 dirname | sort -u)
[[ -n $dirs ]] || { echo "no package has golden files" && exit 0; }
while read -r dir; do
	go test "./$dir" -count=1 -update
done <<<"$dirs"
git status --short -- ':(glob)**/testdata/**'
