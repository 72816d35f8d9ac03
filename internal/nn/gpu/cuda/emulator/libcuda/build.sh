#!/usr/bin/env bash
# build.sh [FILE.cu ...]: compiles the emulated driver with these kernels, and prints the folder that libcuda.so.1 is in. Without files it
# takes our kernels and those of the emulator's own test. What it compiles is kept in your cache directory by the hash of its text. It
# needs a C++ compiler (CXX, g++).
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
files=("$@")
if ((${#files[@]} == 0)); then
	shopt -s nullglob
	files=("$here"/../../kernels/*.cu "$here"/../selftest/*.cu)
	shopt -u nullglob
fi
cxx=${CXX:-g++}
command -v "$cxx" >/dev/null || { echo "no C++ compiler $cxx" >&2; exit 77; }
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ragpilot-ci
mkdir -p "$cache/emulator-objects"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# The library is loaded with the program, so that memory of threads has fixed places. Products and sums are not contracted, and kernels may
# look at memory through any type.
flags=(-std=c++17 -O2 -g1 -fPIC -pthread -ftls-model=initial-exec -fno-extern-tls-init -ffp-contract=off -fno-strict-aliasing
	-U_FORTIFY_SOURCE -Wall -Wno-unknown-pragmas -Wno-sign-compare -Wno-unused-function -Wno-unused-variable)
if [[ $(uname -m) == x86_64 ]] && grep -qw fma /proc/cpuinfo && grep -qw avx2 /proc/cpuinfo; then flags+=(-march=x86-64-v3); fi
version=$("$cxx" --version)

# key FILE prints the hash of what decides about its object.
key() { { echo "$version ${flags[*]}"; cat "$1"; } | git hash-object --stdin; }

# object NAME SOURCE [FLAG...] compiles SOURCE to $tmp/NAME.o.
object() {
	local name=$1 source=$2 kept
	shift 2
	"$cxx" "${flags[@]}" "$@" -I "$here" -E -x c++ "$source" -o "$tmp/$name.ii"
	kept=$cache/emulator-objects/$(grep -v '^#' "$tmp/$name.ii" >"$tmp/$name.key" && key "$tmp/$name.key").o
	if [[ ! -e $kept ]]; then
		"$cxx" "${flags[@]}" "$@" -I "$here" -c -x c++ "$source" -o "$tmp/$name.new.o"
		mv -f "$tmp/$name.new.o" "$kept"
	fi
	cp "$kept" "$tmp/$name.o"
}

# kernels FILE prints a source that includes it and names its kernels. The preprocessor looks first, for kernels that macros define.
kernels() {
	local names shared name
	"$cxx" -std=c++17 -DRP_EMU -E -P -x c++ "$1" -o "$tmp/text"
	names=$(tr '\n' ' ' <"$tmp/text" | sed -E 's/__launch_bounds__ *\([^()]*(\([^()]*\)[^()]*)*\)//g' |
		grep -oE 'extern *"C" *(__global__ *void|void *__global__) +[A-Za-z_0-9]+ *\(' | sed -E 's/ *\($//; s/.* //' | sort -u || true)
	shared=$(tr '\n' ' ' <"$tmp/text" | grep -oE 'extern +__shared__[^;]*\[ *\] *;' | sed -E 's/ *\[ *\] *;$//; s/.*[^A-Za-z_0-9]//' | sort -u || true)
	[[ -n $names ]] || { echo "$1 has no kernel" >&2; return 1; }
	echo "#define RP_EMU"
	echo "#include \"simt.hpp\""
	for name in $shared; do echo "$name" >>"$tmp/shared"; done
	echo "#include \"$(realpath "$1")\""
	for name in $names; do echo "RP_EMU_KERNEL($name)"; done
}

objects=()
start() { # at most two at once
	while (($(jobs -rp | wc -l) >= 2)); do wait -n; done
	object "$@" &
	pids+=($!)
	objects+=("$tmp/$1.o")
}
pids=()
{
	echo 'extern "C" int rp_emu_missing(const char*);'
	grep -v '^#' "$here/../../driver/symbols.txt" | sed -E 's/.*/extern "C" __attribute__((weak)) int &() { return rp_emu_missing("&"); }/'
} >"$tmp/missing.cpp"
start emulator "$here/emulator.cpp"
start simt "$here/simt.cpp"
start missing "$tmp/missing.cpp"
touch "$tmp/shared"
n=0
for file in "${files[@]}"; do
	n=$((n + 1))
	kernels "$file" >"$tmp/kernels$n.cpp"
	start "kernels$n" "$tmp/kernels$n.cpp"
done
# Memory of a size that the launch says. It is not initialized, so it is of the size that any launch may ask for.
echo 'extern "C" int rp_emu_missing(const char*);' >"$tmp/dynamic.cpp" # a file without a line has no key
sort -u "$tmp/shared" | sed -E 's/.*/extern "C" { alignas(16) thread_local unsigned char rp_emu_dynamic_&[48 << 10] __asm__("&"); }/' >>"$tmp/dynamic.cpp"
start dynamic "$tmp/dynamic.cpp"
for pid in "${pids[@]}"; do wait "$pid"; done

key=$({ echo "$version"; for o in "${objects[@]}"; do git hash-object "$o"; done; } | git hash-object --stdin)
dir=$cache/emulator-${key:0:16}
if [[ ! -e $dir/libcuda.so.1 ]]; then
	mkdir -p "$dir"
	"$cxx" -shared -pthread -Wl,-soname,libcuda.so.1 -o "$tmp/libcuda.so.1" "${objects[@]}"
	mv -f "$tmp/libcuda.so.1" "$dir/"
fi
echo "$dir"
