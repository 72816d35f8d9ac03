#!/usr/bin/env bash
# symbols.sh: prints the functions of the driver that programs with the tag cuda call, with headers of CUDA 12 or 13: what the linker misses
# if there are none. It is for whoever adds a call, or takes another version of gorgonia.org/cu:
#   .ci/gpu/symbols.sh >symbols && mv symbols internal/nn/gpu/cuda/driver/symbols.txt
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for version in 12 13; do
	variables=$(.ci/gpu/driver.sh "$version")
	eval "$variables"
	"$(go env CC)" -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$tmp/libcuda.so" -x c /dev/null
	for package in cuda cuda/emulator/selftest; do # the first has a cuInit of its own
		if CGO_LDFLAGS=-L$tmp go test -c -tags cuda -o "$tmp/program" "./internal/nn/gpu/$package" 2>>"$tmp/errors"; then
			echo "package $package calls no driver" >&2
			exit 1
		fi
	done
done
names=$(sed -nE "s/.*undefined reference to \`(cu[A-Za-z0-9_]+)'.*/\1/p" "$tmp/errors")
[[ -n $names ]] || { cat "$tmp/errors" >&2 && exit 1; }
sort -u <<<"$names"
