#!/usr/bin/env bash
# Makes the figures of docs/memory.md's benchmark again: docs/load/memory-bench.txt and memory-bench.svg, and the text between the marks
# "bench: begin" and "bench: end" of docs/memory.md, if it has them. Nothing else should run meanwhile: times are measured.
# usage: docs/load/memory-bench.sh             recall, times, prompts and the picture
#        docs/load/memory-bench.sh load        100,000 memories of one user: docs/load/memory-load.txt, marks "load: begin", "load: end"
# env: ANSWERS (0: how many turns of each kind of prompt SmolLM2 answers), MEMORIES (100000), WRITERS (10), PAUSE (1s), FLAGS (more for the command)
set -euo pipefail
cd "$(dirname "$0")/../.."
: "${ANSWERS:=0}" "${MEMORIES:=100000}" "${WRITERS:=10}" "${PAUSE:=1s}" "${FLAGS:=}"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
CGO_ENABLED=0 go build -o "$tmp/ragpilot" ./cmd/ragpilot

part=bench to=docs/load/memory-bench
command=(memory bench --store sqlite,inmem)
if [[ ${1:-} == load ]]; then
	part=load to=docs/load/memory-load
	command=(memory bench --store sqlite --load "$MEMORIES" --writers "$WRITERS" --pause "$PAUSE")
else
	command+=(--answers "$ANSWERS" --chart "$tmp/picture.svg")
fi
read -r -a more <<<"$FLAGS"
"$tmp/ragpilot" "${command[@]}" "${more[@]}" >"$tmp/table"
cp "$tmp/table" "$to.txt"
if [[ -f $tmp/picture.svg ]]; then cp "$tmp/picture.svg" "$to.svg"; fi
awk -v file="$tmp/table" -v part="$part" '
	index($0, "<!-- " part ": end -->") { skip = 0 }
	!skip
	index($0, "<!-- " part ": begin -->") { skip = 1; print "```"; while ((getline line < file) > 0) print line; print "```" }
' docs/memory.md >"$tmp/memory.md"
cat "$tmp/memory.md" >docs/memory.md
cat "$tmp/table"
