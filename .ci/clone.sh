#!/usr/bin/env bash
# The README's commands in a fresh clone of HEAD, and the README's promises about their output (.ci/readme.sh).
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
	if ! make --no-print-directory "$target" >"$tmp/$target.txt" 2>"$tmp/$target.err"; then
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

# readme.sh <file with the output of make demo> compares it with what README.md shows.
if [[ -x .ci/readme.sh ]]; then
	.ci/readme.sh "$tmp/demo.txt"
else
	echo "not run: comparison of the README's output (.ci/readme.sh is not there)"
fi
