#!/usr/bin/env bash
# What finds faults and takes hours: all tests with the race detector and without it, none of them shortened; processes that are killed and
# flooded; streams that push each other out of a small cache; a soak of 500,000 requests; every fuzz target; the program for all platforms; a
# release, twice. It is not part of ".ci/run" without arguments. Arguments name parts to run, in place of all.
# A part that has passed on this commit with a clean work tree is not run again: RAGPILOT_LONG_DIR (in the cache folder) keeps which.
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
go build -C .ci/tools -o "$tmp/testreport" ./testreport
beside=$(.ci/beside.sh)
eval "$beside"
export RAGPILOT_LONG=1

# The status of go test is in its output: testreport fails where a test, a build or the run itself failed.
run() {
	go test -json -count=1 -timeout 3h "$@" 2>"$tmp/stderr" | "$tmp/testreport" -forbid-skip "$RAGPILOT_FORBID_SKIP" ||
		{ cat "$tmp/stderr" && return 1; }
}

faults() {
	export RAGPILOT_FAULTS=1
	run ./internal/testkit/faulttest # the programs are built without the race detector, so the tests need none
	run -run Killed ./engines/local ./engines/local/internal/kvfile
}

streams() {
	command -v "$(go env CC)" >/dev/null || { echo "not run: the race detector in TestStreams (no C compiler)" && return; }
	RAGPILOT_FAULTS=1 CGO_ENABLED=1 run -race -run TestStreams ./engines/local
}

soak() { RAGPILOT_FAULTS=1 RAGPILOT_SOAK=500000 run -run Soak ./internal/sidecar; }

# The slow index beside long conversations and questions; the step "race" has the short ones.
invariants() { run -tags invariants -run '^(TestManyTurns|TestManyBlocks|TestLongQuestions)$' ./contextpilot; }

everything() {
	export CGO_ENABLED=0 RAGPILOT_TEST_PULL=1
	go build -o "$tmp/ragpilot" ./cmd/ragpilot
	for model in smollm2 minilm; do "$tmp/ragpilot" model pull "$model" || echo "not run: tests with $model (see above)"; done
	RAGPILOT_MINILM=$("$tmp/ragpilot" model path minilm || true) run ./...
}

race() { .ci/race.sh; }

# All tests of stores with the race detector, and the recall of hybrid search, which embeds 435,000 tokens the first time.
stores() {
	local cache=${XDG_CACHE_HOME:-$HOME/.cache}/ragpilot-ci
	mkdir -p "$cache"
	RAGPILOT_RECALL_VECTORS=$cache/recall-vectors .ci/stores.sh
}

llamacpp() { .ci/llamacpp.sh; }

adapters() { .ci/adapters.sh; }

gpu() { .ci/gpu.sh; }

judge() { .ci/judge.sh; }

fuzz() { .ci/fuzz.sh; }

platforms() {
	local platform
	for platform in linux/amd64 linux/arm64 linux/386 darwin/arm64 windows/amd64; do
		export GOOS=${platform%/*} GOARCH=${platform#*/}
		go list -export -f '{{if .Export}}{{end}}' ./... >/dev/null # unlike go build it does not link each program
		go build -o "$tmp/ragpilot" ./cmd/ragpilot
		echo "built for $platform"
	done
}

# What the step "lint" leaves out: the tests with Elasticsearch's own clients, and the modules of these scripts.
lint() {
	local bin mod
	bin=$(.ci/tools.sh)
	"$bin/golangci-lint" run --build-tags stores ./retriever/elastic
	for mod in .ci/*/go.mod; do
		go -C "${mod%/go.mod}" vet ./...
		echo "vetted ${mod%/go.mod}"
	done
}

release() { .ci/reproducible.sh; }

# Those that take longest first.
parts=(race invariants everything fuzz platforms stores soak llamacpp gpu faults lint judge release adapters streams)
if (($# > 0)); then parts=("$@"); fi
for part in "${parts[@]}"; do
	if [[ $(type -t "$part") != function ]]; then
		echo "no such part: $part"
		exit 2
	fi
done
if ((${#parts[@]} > 1)); then # two at a time, as some compute on one core and some wait; what a part prints follows when it ends
	printf '%s\n' "${parts[@]}" | xargs -P "${RAGPILOT_LANES:-2}" -I{} bash -c '
		echo "== {}"
		code=0
		.ci/long.sh {} >"$1/{}" 2>&1 || code=$?
		cat "$1/{}"
		exit "$code"' _ "$tmp" || { echo "long: FAILED" && exit 1; }
	exit
fi
part=${parts[0]} key=$(git rev-parse HEAD)
if [[ -n $(git status --porcelain) ]]; then key=""; fi
done_dir=${RAGPILOT_LONG_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/ragpilot-ci/long}
if [[ -n $key && -e $done_dir/$key-$part ]]; then
	echo "$part: passed before, on this commit"
	exit
fi
start=$SECONDS
result=0
("$part") & # not within "if", where bash goes on after a command that fails
wait "$!" || result=$?
case $result in
0)
	echo "$part: passed after $((SECONDS - start)) s"
	if [[ -n $key ]]; then mkdir -p "$done_dir" && touch "$done_dir/$key-$part"; fi
	;;
77) echo "not run: $part (see above)" ;;
*) echo "$part: FAILED ($result) after $((SECONDS - start)) s" && exit 1 ;;
esac
