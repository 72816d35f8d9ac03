#!/usr/bin/env bash
# The README's commands in a fresh clone of HEAD. The tests run with -short: the step "test" runs all of them, and what tests expect must hold
# of the fewer and smaller cases, too. What the README and docs/results.md show of their output is a test of internal/lab/demo.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ -n $(git status --porcelain) ]]; then
	echo "note: the work tree differs from HEAD; what is tested here is HEAD $(git rev-parse --short HEAD)"
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
git clone --quiet --no-hardlinks . "$tmp/ragpilot"
cd "$tmp/ragpilot"

for target in demo test; do
	start=$SECONDS
	flags=""
	if [[ $target == test ]]; then flags="-short -vet=off"; fi # the step "lint" has vet
	if ! GOFLAGS="${GOFLAGS:-} $flags" make --no-print-directory "$target" >"$tmp/$target.txt" 2>"$tmp/$target.err"; then
		cat "$tmp/$target.txt" "$tmp/$target.err"
		echo "make $target failed in a fresh clone"
		exit 1
	fi
	echo "make $target: ok in $((SECONDS - start)) s"
done
if [[ -n $(git status --porcelain) ]]; then
	printf 'the commands left files that git does not ignore:\n%s\n' "$(git status --porcelain)"
	exit 1
fi
