#!/usr/bin/env bash
# Makes the figures of docs/load.md again: the fit, the curves and pictures, and the sustained rates on the open traces.
# usage: docs/load/run.sh      env: POLICIES (the first one is what the others are compared with), SEEDS
# Everything is simulated in virtual time and comes out the same each time, except for what another policy changes.
set -euo pipefail
cd "$(dirname "$0")/../.."
traces=../shared/traces
: "${POLICIES:=retrieval,paper,best}" "${SEEDS:=5}"

if [[ ! -d $traces ]]; then
	echo "not run: load (no $traces beside the repository)"
	exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
CGO_ENABLED=0 go build -o "$tmp/ragpilot" ./cmd/ragpilot

replay() { # TRACE flags...
	local trace=$1
	shift
	"$tmp/ragpilot" replay --trace "$traces/$trace/trace.jsonl" --blocks "$traces/$trace/blocks.jsonl" \
		--policy "$POLICIES" --seeds "$SEEDS" "$@"
}

go run ./internal/lab/load/measure -fit docs/load/cpu-tiny.jsonl -batch-tokens 2048 >docs/load/fit.txt
replay multihop-2wiki --arrivals poisson:1,2,4,6,8,10,12 --plot docs/load >docs/load/rates.txt
: >docs/load/sustained.txt
sustained() { # TITLE TRACE flags...
	echo "$1" >>docs/load/sustained.txt
	shift
	replay "$@" --find-rate --slo 2s >>docs/load/sustained.txt
	echo >>docs/load/sustained.txt
}
sustained "multihop-2wiki" multihop-2wiki --arrivals poisson:4
sustained "multihop-2wiki, bursts of four" multihop-2wiki --arrivals bursts:4,4
sustained "multihop-2wiki, cache of 20 % of the trace" multihop-2wiki --arrivals poisson:4 --capacity 20%
sustained "multihop-2wiki, steps of 2048 tokens" multihop-2wiki --arrivals poisson:4 --batch-tokens 2048
sustained "memory-locomo-k100" memory-locomo-k100 --arrivals poisson:3
sustained "memory-locomo-k100, cache of 20 % of the trace" memory-locomo-k100 --arrivals poisson:3 --capacity 20%
sustained "chat-mtragun, 10 s of thinking" chat-mtragun --arrivals poisson:1 --think 10s
sustained "chat-mtragun, 10 s of thinking, cache of 20 % of the trace" chat-mtragun --arrivals poisson:1 --think 10s --capacity 20%

for name in fit rates sustained; do
	awk -v name="$name" -v file="docs/load/$name.txt" '
		index($0, "<!-- " name ": end -->") { skip = 0 }
		!skip
		index($0, "<!-- " name ": begin -->") { skip = 1; print "```"; while ((getline line < file) > 0) print line; print "```" }
	' docs/load.md >"$tmp/load.md"
	cat "$tmp/load.md" >docs/load.md
done
