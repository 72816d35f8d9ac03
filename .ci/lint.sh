#!/usr/bin/env bash
# golangci-lint with .golangci.yml: linters with those of go vet, and formatters. And the tests of what steps are made of.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=$(.ci/tools.sh)
export GOGC=400 # of the linters, and of the compiler: this step is the first that compiles
"$bin/golangci-lint" config verify
"$bin/golangci-lint" run ./...
# The tests with Elasticsearch's own clients: without types here, as these 864 packages would be read for them; the step "long" has the rest.
"$bin/golangci-lint" run --build-tags stores --fast-only ./retriever/elastic
unset GOGC
go test -C .ci/tools ./... # of these scripts themselves
