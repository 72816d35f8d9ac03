#!/usr/bin/env bash
# Prints the path of a podman for the tests: Debian's package, which is unpacked into your cache directory with what it needs, not installed, and
# keeps its images there. It runs containers on this machine's network, as root. Exits 77 and says why on standard error if it does not work here.
set -euo pipefail
export LC_ALL=C
apt=$(cd "$(dirname "$0")" && pwd)/apt.sh

missing() {
	echo "not run: podman ($1)" >&2
	exit 77
}

cache=${XDG_CACHE_HOME:-$HOME/.cache}/ragpilot-ci
podman=$cache/podman/podman
if [[ ! -x $podman ]]; then
	[[ $(id -u) == 0 ]] || missing "neither podman nor docker works here, and Debian's podman needs root"
	if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
		missing "neither podman nor docker works here, and there is no apt-get to get one"
	fi
	mkdir -p "$cache"
	part=$(mktemp -d "$cache/podman.XXXXXX") # renamed when complete: two runs at once do not meet
	trap 'rm -rf "$part"' EXIT
	"$apt" -qq update >"$part/log" 2>&1 || true # lists that are there may do
	packages=$("$apt" -qq --print-uris --no-install-recommends -y install podman runc 2>>"$part/log" | sed -nE "s/^'[^']*' ([^_]+)_.*/\1/p")
	mkdir -p "$part/debs" "$part/root"
	# shellcheck disable=SC2086 # one word a package
	if [[ -z $packages ]] || ! (cd "$part/debs" && "$apt" -qq download $packages) >>"$part/log" 2>&1; then
		tail -n 5 "$part/log" >&2
		missing "neither podman nor docker works here, and apt-get has none that can be unpacked, see above"
	fi
	for deb in "$part"/debs/*.deb; do
		dpkg-deb -x "$deb" "$part/root"
	done
	rm -rf "$part/debs"
	at=$cache/podman # where it will be
	cat >"$part/containers.conf" <<-END
		[engine]
		conmon_path = ["$at/root/usr/bin/conmon"]
		cgroup_manager = "cgroupfs"
		events_logger = "none"
		runtime = "runc"
		[engine.runtimes]
		runc = ["$at/root/usr/sbin/runc"]
		[containers]
		log_driver = "k8s-file"
		netns = "host"
		default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
	END
	cat >"$part/storage.conf" <<-END
		[storage]
		driver = "vfs"
		runroot = "$at/run"
		graphroot = "$at/images"
	END
	echo '{"default": [{"type": "insecureAcceptAnything"}]}' >"$part/policy.json"
	cat >"$part/podman" <<-END
		#!/bin/sh
		if [ "\$1" = build ]; then
			shift
			set -- build --isolation chroot --signature-policy "$at/policy.json" "\$@"
		fi
		export CONTAINERS_CONF="$at/containers.conf" CONTAINERS_STORAGE_CONF="$at/storage.conf" LD_LIBRARY_PATH="$at/root/usr/lib/\$(uname -m)-linux-gnu"
		exec "$at/root/usr/bin/podman" "\$@"
	END
	chmod +x "$part/podman"
	mv -T "$part" "$cache/podman" 2>/dev/null || [[ -x $podman ]]
fi
"$podman" info >/dev/null || missing "Debian's podman does not work here, see above"
echo "$podman"
