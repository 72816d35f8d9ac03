.DEFAULT_GOAL := help
.PHONY: help demo model build test test-long race engine-test lint bench bench-compare results load cost golden fuzz stores stores-stop examples release check
GO ?= go
REF ?= HEAD
# What "make test" tests, with which further flags.
PACKAGES ?= ./...
TESTFLAGS ?=
# Without cgo: what one command compiles, the next one need not.
export CGO_ENABLED ?= 0

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## show what is saved, on a small model in the same process, or on the simulator where that cannot run
	@$(GO) run ./cmd/ragpilot demo

model: ## fetch the small model of the demonstration (98 MB)
	@$(GO) run ./cmd/ragpilot model pull smollm2

build: ## build bin/ragpilot, without cgo
	$(GO) build -trimpath -o bin/ ./cmd/ragpilot

test: ## run the tests but those that compute for minutes; needs no C compiler
	$(GO) test -short -vet=off -timeout 60m $(TESTFLAGS) $(PACKAGES)

test-long: ## run all tests, also those that compute for minutes
	$(GO) test -vet=off -timeout 120m $(TESTFLAGS) $(PACKAGES)

race: ## run all tests with the race detector; needs a C compiler
	CGO_ENABLED=1 $(GO) test -race -timeout 120m $(TESTFLAGS) $(PACKAGES)

engine-test: ## run against real vLLM servers, if vLLM is there: make engine-test PARTS=accuracy
	@.ci/enginetest.sh $(PARTS) || { code=$$?; test $$code -eq 77; }

lint: ## run golangci-lint in its pinned version
	@.ci/lint.sh

bench: ## run all benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./...

bench-compare: ## compare the benchmarks with another commit: make bench-compare REF=main PKG=./contextpilot/internal/tree
	@.ci/bench-compare.sh $(REF) $(PKG)

results: ## judge all policies on the open traces and on held-out workloads, and write the tables of docs/results.md
	.ci/judge.sh --write
	$(GO) test -count=1 -run HeldOut ./internal/lab/replay -update

golden: ## rewrite the golden files; read the diff before committing it
	@.ci/golden.sh

load: ## replay the open traces under load and write the figures of docs/load.md
	docs/load/run.sh

cost: ## measure what planning costs, as docs/results.md shows it
	@.ci/cost.sh

fuzz: ## run every fuzz target for a few seconds
	@.ci/fuzz.sh

stores: ## start real stores for the tests, on this machine; then: eval "$(.ci/stores/servers.sh env)"
	@.ci/stores/servers.sh start

stores-stop: ## stop them
	@.ci/stores/servers.sh stop

examples: ## run every program under examples/
	@.ci/examples.sh

release: ## build what a release consists of, with bills of materials, into bin/release
	@.ci/release.sh

check: ## everything that must pass before a change goes in
	@.ci/run
