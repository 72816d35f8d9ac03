#!/usr/bin/env bash
# wheels.sh: prints the folder of what requirements.txt names, unpacked. It is fetched once (68 MB) into your cache directory. Exits 77 and
# says why on standard error if it cannot be had here.
set -euo pipefail
cd "$(dirname "$0")"
export LC_ALL=C

missing() {
	echo "not run: CUDA's headers and compiler ($1)" >&2
	exit 77
}

[[ $(uname -sm) == "Linux x86_64" ]] || missing "they are taken from packages for Linux on x86_64"
command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1 || missing "no python3 with pip"
key=$(git hash-object --stdin <requirements.txt)
dir=${XDG_CACHE_HOME:-$HOME/.cache}/ragpilot-ci/cuda-${key:0:16}
if [[ ! -d $dir ]]; then
	start=$SECONDS
	mkdir -p "${dir%/*}"
	part=$(mktemp -d "$dir.XXXXXX") # renamed when complete: two runs at once do not meet
	trap 'rm -rf "$part"' EXIT
	if ! python3 -m pip download --quiet --no-input --disable-pip-version-check --retries 1 --timeout 20 --no-deps --require-hashes \
		--only-binary :all: --dest "$part/wheels" -r requirements.txt >"$part/log" 2>&1; then
		tail -20 "$part/log" >&2
		if grep -qE 'NewConnectionError|ProxyError|Retrying \(|Connection to .* timed out' "$part/log"; then
			missing "they cannot be downloaded, see above"
		fi
		exit 1
	fi
	for wheel in "$part"/wheels/*.whl; do
		name=${wheel##*/}
		python3 -m zipfile -e "$wheel" "$part/${name%%-*}"
	done
	rm -rf "$part/wheels" "$part/log" "$part"/*/nvidia/*/nvvm
	chmod +x "$part"/nvidia_cuda_nvcc_cu12/nvidia/cuda_nvcc/bin/*
	[[ -e $dir ]] || mv "$part" "$dir"
	echo "CUDA's headers and compiler: cold, fetched in $((SECONDS - start)) s" >&2
fi
echo "$dir"
