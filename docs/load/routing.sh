#!/usr/bin/env bash
# Makes the figures of docs/routing.md again: ways to spread requests over replicas, on the open traces.
# usage: docs/load/routing.sh      env: SEEDS
# Everything is simulated in virtual time and comes out the same each time, except for what another policy or router changes.
set -euo pipefail
cd "$(dirname "$0")/../.."
traces=../shared/traces
: "${SEEDS:=5}"

if [[ ! -d $traces ]]; then
	echo "not run: routing (no $traces beside the repository)"
	exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
CGO_ENABLED=0 go build -o "$tmp/ragpilot" ./cmd/ragpilot

route() { # TRACE flags...
	local trace=$1
	shift
	"$tmp/ragpilot" bench route --trace "$traces/$trace/trace.jsonl" --blocks "$traces/$trace/blocks.jsonl" \
		--replicas 2,4 --arrivals poisson:1,3,8 --seeds "$SEEDS" "$@" >"docs/load/routing-$trace.txt"
}

route multihop-2wiki &
route memory-locomo-k100
route chat-mtragun --think 10s
wait $!

for name in multihop-2wiki memory-locomo-k100 chat-mtragun; do
	awk -v name="$name" -v file="docs/load/routing-$name.txt" '
		index($0, "<!-- " name ": end -->") { skip = 0 }
		!skip
		index($0, "<!-- " name ": begin -->") { skip = 1; print "```"; while ((getline line < file) > 0) print line; print "```" }
	' docs/routing.md >"$tmp/routing.md"
	cat "$tmp/routing.md" >docs/routing.md
done
