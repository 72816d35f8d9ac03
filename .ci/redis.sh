#!/usr/bin/env bash
# Prints the path of a valkey-server or redis-server for the tests: RAGPILOT_REDIS_SERVER, one on PATH, or Debian's package,
# which is unpacked into your cache directory, not installed. Exits 77 and says why on standard error if there is none.
set -euo pipefail
export LC_ALL=C
apt=$(cd "$(dirname "$0")" && pwd)/apt.sh

works() { "$1" --version >/dev/null 2>&1; }

if [[ -n ${RAGPILOT_REDIS_SERVER:-} ]]; then
	if works "$RAGPILOT_REDIS_SERVER"; then
		echo "$RAGPILOT_REDIS_SERVER"
		exit 0
	fi
	echo "RAGPILOT_REDIS_SERVER=$RAGPILOT_REDIS_SERVER does not run" >&2
	exit 1
fi
for name in valkey-server redis-server; do
	if path=$(command -v "$name") && works "$path"; then
		echo "$path"
		exit 0
	fi
done

cache=${XDG_CACHE_HOME:-$HOME/.cache}/ragpilot-ci
for name in valkey-server redis-server; do
	if works "$cache/redis/$name"; then
		echo "$cache/redis/$name"
		exit 0
	fi
done

if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
	echo "not run: no valkey-server or redis-server on PATH, and no apt-get here to get one" >&2
	exit 77
fi
mkdir -p "$cache"
part=$(mktemp -d "$cache/redis.XXXXXX") # renamed when complete: two runs at once do not meet
trap 'rm -rf "$part"' EXIT

# unpack puts a package and what it needs beyond what is installed into the folder.
unpack() {
	local packages
	packages=$("$apt" -qq --print-uris --no-install-recommends -y install "$1" 2>>"$part/log" | sed -nE "s/^'[^']*' ([^_]+)_.*/\1/p") || return 1
	[[ -n $packages ]] || return 1
	mkdir -p "$part/debs" "$part/root"
	# shellcheck disable=SC2086 # one word a package
	(cd "$part/debs" && "$apt" -qq download $packages) >>"$part/log" 2>&1 || return 1
	for deb in "$part"/debs/*.deb; do
		dpkg-deb -x "$deb" "$part/root" || return 1
	done
	rm -rf "$part/debs"
}

# wrapper prints a script that runs the program, wherever the folder is then, with the libraries beside it.
wrapper() {
	cat <<-END
		#!/bin/sh
		at=\$(dirname "\$(readlink -f "\$0")")/root
		LD_LIBRARY_PATH=\$(printf '%s\n' "\$at"/usr/lib/*-linux-gnu* "\$at"/lib/*-linux-gnu* | paste -sd: -) exec "\$at/usr/bin/$1" "\$@"
	END
}

[[ $(id -u) != 0 ]] || "$apt" -qq update >>"$part/log" 2>&1 || true # lists that are there may do
for name in valkey-server redis-server; do
	unpack "$name" || continue
	wrapper "$name" >"$part/$name"
	chmod +x "$part/$name"
	if works "$part/$name"; then
		mv "$part/log" "$part/root/log"
		rm -rf "$cache/redis"
		mv -T "$part" "$cache/redis"
		echo "$cache/redis/$name"
		exit 0
	fi
done
tail -n 5 "$part/log" >&2
echo "not run: no valkey-server or redis-server on PATH, and apt-get has none that can be unpacked (see above)" >&2
exit 77
