#!/usr/bin/env bash
# Makes the figures of docs/routing.md again, in virtual time: they come out the same each time.
set -euo pipefail
cd "$(dirname "$0")/../.."
traces=../shared/traces
if [[ ! -d $traces ]]; then
	echo "not run: routing (no $traces beside the repository)"
	exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for trace in multihop-2wiki memory-locomo-k100 chat-mtragun; do
	echo "$trace"
	go run ./internal/load/routing "$traces/$trace/trace.jsonl" "$traces/$trace/blocks.jsonl" 1,3,8
	echo
done >"$tmp/table"
awk -v file="$tmp/table" '
	index($0, "<!-- table: end -->") { skip = 0 }
	!skip
	index($0, "<!-- table: begin -->") { skip = 1; print "```"; while ((getline line < file) > 0) print line; print "```" }
' docs/routing.md >"$tmp/page"
cat "$tmp/page" >docs/routing.md
