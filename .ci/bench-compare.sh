#!/usr/bin/env bash
# bench-compare.sh REF [PACKAGE…]: benchmarks of REF against those of the work tree, COUNT (10) runs each, by benchstat.
set -euo pipefail
cd "$(dirname "$0")/.."

ref=$1
shift
packages=("${@:-./...}")
bin=$(.ci/tools.sh)
tmp=$(mktemp -d)
trap 'git worktree remove --force "$tmp/old" 2>/dev/null; rm -rf "$tmp"' EXIT
git worktree add --quiet --detach "$tmp/old" "$ref"

bench() { go test -run '^$' -bench "${BENCH:-.}" -benchmem -count "${COUNT:-10}" "${packages[@]}"; }
(cd "$tmp/old" && bench) >"$tmp/old.txt"
bench >"$tmp/new.txt"
"$bin/benchstat" "$ref=$tmp/old.txt" "work tree=$tmp/new.txt"
