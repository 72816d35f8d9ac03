#!/usr/bin/env bash
# golangci-lint with .golangci.yml: linters with those of go vet, and formatters. And the tests of what steps are made of.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=$(.ci/tools.sh)
"$bin/golangci-lint" config verify
"$bin/golangci-lint" run ./...
go test -C .ci/tools ./... # of these scripts themselves
