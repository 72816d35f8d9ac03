#!/usr/bin/env bash
# Prints the path of a Chromium for the tests: CHROMIUM, one on PATH, or Debian's package, which root installs. Exits 77 and says why on
# standard error if there is none.
set -euo pipefail
export LC_ALL=C
apt=$(cd "$(dirname "$0")" && pwd)/apt.sh

missing() {
	echo "not run: tests in a browser ($1)" >&2
	exit 77
}

if [[ -n ${CHROMIUM:-} ]]; then
	"$CHROMIUM" --version >/dev/null # names what is missing, and fails
	echo "$CHROMIUM"
	exit 0
fi
names=(chromium chromium-browser google-chrome google-chrome-stable headless_shell)
find_one() {
	local name
	for name in "${names[@]}"; do
		if command -v "$name"; then return; fi
	done
	return 1
}
if find_one; then exit 0; fi

command -v apt-get >/dev/null || missing "none of ${names[*]} on PATH, and no apt-get"
[[ $(id -u) == 0 ]] || missing "none of ${names[*]} on PATH, and only root can install one"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
start=$SECONDS
"$apt" -qq update >"$log" 2>&1 || true # lists that are there may do
if ! DEBIAN_FRONTEND=noninteractive "$apt" -qq -o DPkg::Lock::Timeout=120 install -y --no-install-recommends chromium >>"$log" 2>&1; then
	tail -n 5 "$log" >&2
	missing "chromium cannot be installed, see above"
fi
find_one || missing "the package chromium has no program of that name"
echo "chromium: cold, installed in $((SECONDS - start)) s" >&2
