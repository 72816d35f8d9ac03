#!/usr/bin/env bash
# driver.sh [12 | 13]: prints the variables with which programs with the tag cuda are built on a machine without CUDA: headers of CUDA 12 or
# 13, and a library to link with that has only the names of the driver's functions. To build one by hand:
#   eval "$(.ci/gpu/driver.sh)" && go build -tags cuda ./cmd/ragpilot
# The library's functions return 34, CUDA_ERROR_STUB_LIBRARY. Programs find the real driver, or the emulated one, when they are started.
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C

version=${1:-12}
wheels=$(.ci/gpu/wheels.sh)
case $version in
12) headers=$wheels/nvidia_cuda_runtime_cu12/nvidia/cuda_runtime/include ;;
13) headers=$wheels/nvidia_cuda_runtime/nvidia/cu13/include ;;
*) echo "no headers of CUDA $version" >&2; exit 2 ;;
esac
cc=$(go env CC)
command -v "$cc" >/dev/null || { echo "not run: builds with the tag cuda (no C compiler $cc)" >&2; exit 77; }

from=internal/nn/gpu/cuda/driver
key=$({ "$cc" --version; cat "$from/symbols.txt" "$from/cuda.h"; } | git hash-object --stdin)
dir=${XDG_CACHE_HOME:-$HOME/.cache}/ragpilot-ci/cuda-driver-${key:0:16}
if [[ ! -d $dir ]]; then
	part=$(mktemp -d "$dir.XXXXXX")
	trap 'rm -rf "$part"' EXIT
	mkdir "$part/include"
	cp "$from/cuda.h" "$part/include/"
	grep -v '^#' "$from/symbols.txt" | sed 's/.*/int &(void) { return 34; }/' >"$part/driver.c"
	"$cc" -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$part/libcuda.so" "$part/driver.c"
	[[ -e $dir ]] || mv "$part" "$dir"
fi
printf 'export CGO_ENABLED=1 CGO_CFLAGS=%q CGO_LDFLAGS=%q\n' "-O2 -I$dir/include -I$headers" "-L$dir"
