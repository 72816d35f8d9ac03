#!/usr/bin/env bash
# Builds for the platforms we support, without cgo.
set -euo pipefail
cd "$(dirname "$0")/.."

for platform in linux/amd64 linux/arm64 darwin/arm64 windows/amd64; do
	start=$SECONDS
	CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/} go build ./...
	echo "built for $platform in $((SECONDS - start)) s"
done
