#!/usr/bin/env bash
# venv.sh NAME REQUIREMENTS: prints the Python of a virtual environment that has what the file of requirements names. It is made once per
# version of these and of Python, in your cache directory. Exits 77 and says why on standard error if it cannot be made here.
set -euo pipefail
export LC_ALL=C

missing() {
	echo "not run: $name ($1)" >&2
	exit 77
}

name=$1 requirements=$2
if ! command -v python3 >/dev/null || ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
	missing "no python3 of version 3.10 or later"
fi
key=$({ python3 -VV; cat "$requirements"; } | git hash-object --stdin)
venv=${XDG_CACHE_HOME:-$HOME/.cache}/ragpilot-ci/$name-python-${key:0:16}
if [[ ! -x $venv/bin/python ]]; then
	start=$SECONDS
	mkdir -p "${venv%/*}"
	part=$(mktemp -d "$venv.XXXXXX") # renamed when complete: two runs at once do not meet
	trap 'rm -rf "$part"' EXIT
	if ! { python3 -m venv "$part" && "$part/bin/python" -m pip install --quiet --no-input --disable-pip-version-check --retries 1 \
		--timeout 20 --only-binary :all: -r "$requirements"; } >"$part/log" 2>&1; then
		tail -20 "$part/log" >&2
		if grep -qE 'NewConnectionError|ProxyError|Retrying \(|Connection to .* timed out|returned non-zero exit status' "$part/log"; then
			missing "it cannot be installed, see above"
		fi
		exit 1
	fi
	[[ -e $venv ]] || mv "$part" "$venv"
	echo "$name: cold, installed in $((SECONDS - start)) s" >&2
fi
echo "$venv/bin/python"
