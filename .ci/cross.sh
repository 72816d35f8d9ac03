#!/usr/bin/env bash
# Builds for the platforms we support, without cgo.
set -euo pipefail
cd "$(dirname "$0")/.."

for platform in linux/amd64 linux/arm64 linux/386 darwin/arm64 windows/amd64; do
	start=$SECONDS
	export CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/}
	packages=(./...)
	if [[ $platform != "$(go env GOHOSTOS)/$(go env GOHOSTARCH)" ]]; then
		# Elasticsearch's client is more than a thousand packages without a line for one platform.
		mapfile -t packages < <(go list -f '{{if .GoFiles}}{{.ImportPath}}{{end}}' ./... | grep -v /retriever/elastic)
	fi
	go build "${packages[@]}"
	echo "built for $platform in $((SECONDS - start)) s"
done
