#!/usr/bin/env bash
# Checks the types of all packages for the other platforms that we support: files for one of them, and arithmetic that needs 64 bits. The
# step "long" builds them.
set -euo pipefail
cd "$(dirname "$0")/.."

go run -C .ci/tools ./typecheck "$PWD" linux/arm64 linux/386 darwin/arm64 windows/amd64
