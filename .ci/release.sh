#!/usr/bin/env bash
# What a release consists of, in a folder (bin/release unless another is named): for each platform an archive with the
# static program and a bill of its materials in CycloneDX, and the SHA-256 of all of them. The same commit, version of Go
# and kind of machine give the same bytes, wherever the checkout is: .ci/reproducible.sh checks that.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

out=${1:-bin/release}
mkdir -p "$out"
out=$(cd "$out" && pwd)
if [[ -n $(ls -A "$out") ]]; then
	if [[ ! -f $out/SHA256SUMS ]]; then
		echo "$out is neither empty nor an earlier release"
		exit 1
	fi
	rm -f "$out"/ragpilot_* "$out/SHA256SUMS"
fi

# What the environment says of these would be in the bytes.
unset GOEXPERIMENT GOFIPS140
export GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=0 GOAMD64=v1 GOARM64=v8.0 LC_ALL=C
read -ra platforms <<<"${RAGPILOT_PLATFORMS:-linux/amd64 linux/arm64 darwin/arm64 windows/amd64}"
version=$(git describe --tags --always --dirty)
time=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# tools builds what makes bills and archives, once per version of it and of Go.
tools() {
	local key part start=$SECONDS
	key=$({ go version; cat .ci/release/go.mod .ci/release/go.sum .ci/release/*.go; } | git hash-object --stdin)
	dir=${XDG_CACHE_HOME:-$HOME/.cache}/ragpilot-ci/release-${key:0:16}
	if [[ -x $dir/release && -x $dir/cyclonedx-gomod ]]; then return; fi
	mkdir -p "$dir"
	part=$(mktemp -d "$dir/part.XXXXXX") # renamed when complete: two runs at once do not meet
	if ! go build -C .ci/release -trimpath -o "$part/" . || ! go build -C .ci/release -trimpath -o "$part/" tool 2>"$tmp/log"; then
		cat "$tmp/log"
		rm -rf "$part"
		if grep -qE 'dial tcp|no such host|proxyconnect|Forbidden|i/o timeout|connection refused|GOPROXY=off' "$tmp/log"; then
			echo "not run: release (its bill of materials needs cyclonedx-gomod, which cannot be downloaded, see above)"
			return 77
		fi
		return 1
	fi
	mv -f "$part"/* "$dir/"
	rmdir "$part"
	echo "tools of the release: built in $((SECONDS - start)) s"
}

# bill writes a binary's bill of materials. Licences are looked up in the modules' sources, which the build has
# downloaded; that it does not find Go's own and ours there is not worth a warning. The network is not asked.
bill() {
	if ! GOPROXY=off "$dir/cyclonedx-gomod" bin -json -std -licenses -noserial -notimestamp -version "$version" \
		-output "$2" "$1" 2>"$tmp/log"; then
		cat "$tmp/log"
		return 1
	fi
	"$dir/release" check "$1" "$2" | sed "s|$out/||; s|$tmp/||"
}

code=0
tools || code=$?
if ((code != 0)); then exit "$code"; fi

for platform in "${platforms[@]}"; do
	start=$SECONDS os=${platform%/*} arch=${platform#*/}
	name=ragpilot_${version}_${os}_$arch archive=tar.gz suffix=""
	if [[ $os == windows ]]; then archive=zip suffix=.exe; fi
	mkdir "$tmp/$name"
	binary=$tmp/$name/ragpilot$suffix
	GOOS=$os GOARCH=$arch go build -trimpath -buildvcs=true -ldflags "-s -w -X main.version=$version" -o "$binary" ./cmd/ragpilot
	bill "$binary" "$out/$name.cdx.json"
	"$dir/release" notices "$binary" >"$tmp/$name/THIRD_PARTY_LICENSES.txt"
	"$dir/release" pack "$out/$name.$archive" "$time" "$binary" "$tmp/$name/THIRD_PARTY_LICENSES.txt" \
		"$root"/{README.md,LICENSE,CHANGELOG.md} "$root"/packaging/{Containerfile,ragpilot.service,ragpilot.yaml}
	echo "$name.$archive: $(wc -c <"$out/$name.$archive") bytes after $((SECONDS - start)) s"
done
"$dir/release" sums "$out" >"$tmp/SHA256SUMS"
mv "$tmp/SHA256SUMS" "$out/SHA256SUMS"
echo "version $version, $(wc -l <"$out/SHA256SUMS") files in $out"
