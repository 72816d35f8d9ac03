#!/usr/bin/env bash
# Builds a release twice, in two copies of the work tree in different folders, and compares the bytes. Tests what puts it
# together, and asks the program for this machine which version it is.
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/one" "$tmp/another/folder"
tar -cf - --exclude=./bin . | tar -xf - -C "$tmp/one"
cp -R "$tmp/one/." "$tmp/another/folder"

# One platform is enough to see whether bytes are equal; RAGPILOT_PLATFORMS="linux/amd64 darwin/arm64 ..." checks others.
export RAGPILOT_PLATFORMS=${RAGPILOT_PLATFORMS:-$(go env GOOS)/$(go env GOARCH)}
go test -C .ci/release .
"$tmp/one/.ci/release.sh" "$tmp/first"
"$tmp/another/folder/.ci/release.sh" "$tmp/second" >"$tmp/log" || { cat "$tmp/log" && exit 1; }
if ! diff -r "$tmp/first" "$tmp/second"; then
	echo "the same work tree in another folder gives other bytes"
	exit 1
fi
echo "$(wc -l <"$tmp/first/SHA256SUMS") files: the same bytes both times"

archive=$(find "$tmp/first" -name "ragpilot_*_$(go env GOOS)_$(go env GOARCH).tar.gz")
if [[ -z $archive ]]; then
	echo "not run: the program itself (no archive for this machine)"
	exit 0
fi
mkdir "$tmp/unpacked"
tar -xzf "$archive" -C "$tmp/unpacked" --strip-components 1
got=$("$tmp/unpacked/ragpilot" version)
want="ragpilot $(git -C "$tmp/one" describe --tags --always --dirty) $(git rev-parse HEAD)"
if [[ $got != "$want "* ]]; then
	printf 'it says  %s\nbut is   %s\n' "$got" "$want"
	exit 1
fi
echo "$got"
