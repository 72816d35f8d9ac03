#!/usr/bin/env bash
# Compiles all packages for the platforms we support, without cgo, and links the command.
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

for platform in linux/amd64 linux/arm64 linux/386 darwin/arm64 windows/amd64; do
	start=$SECONDS
	export CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/}
	packages=(./...)
	if [[ $platform != "$(go env GOHOSTOS)/$(go env GOHOSTARCH)" ]]; then
		# Elasticsearch's client is more than a thousand packages without a line for one platform.
		mapfile -t packages < <(go list -f '{{if .GoFiles}}{{.ImportPath}}{{end}}' ./... | grep -v /retriever/elastic)
	fi
	go list -export -f '{{if .Export}}{{end}}' "${packages[@]}" >/dev/null # unlike go build it does not link each program
	go build -o "$tmp/ragpilot" ./cmd/ragpilot
	echo "built for $platform in $((SECONDS - start)) s"
done
