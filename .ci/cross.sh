#!/usr/bin/env bash
# Builds for the platforms we support, without cgo.
set -euo pipefail
cd "$(dirname "$0")/.."

for platform in linux/amd64 linux/arm64 darwin/arm64 windows/amd64; do
	start=$SECONDS
	packages=(./...)
	if [[ $platform != "$(go env GOHOSTOS)/$(go env GOHOSTARCH)" ]]; then
		# Elasticsearch's client is more than a thousand packages without a line for one platform.
		mapfile -t packages < <(go list ./... | grep -v /retriever/elastic)
	fi
	CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/} go build "${packages[@]}"
	echo "built for $platform in $((SECONDS - start)) s"
done
