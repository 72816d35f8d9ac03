#!/usr/bin/env bash
# Makes the figures of docs/routing.md with real servers again: 2 and 4 replicas of llama-server, with a model of next to no size
# (words_gguf.py), and of `ragpilot bench upstream`, which a run restarts so that it begins with empty caches.
# usage: docs/load/routing-real.sh [KIND…]      KIND: slots (llama-server), pages (bench upstream)
# env: RAGPILOT_LLAMA_SERVER (the newest that .ci/llamacpp.sh has built), PORT (the first of five), SLOTS (of a llama-server)
# Prompts are shortened, see run below, and only what the caches hold is measured: times say how busy the machine was.
set -euo pipefail
cd "$(dirname "$0")/../.."
: "${PORT:=18100}" "${SLOTS:=16}"
traces=../shared/traces

# stop ends the servers that are named in $DIR.
stop() {
	local file pid
	for file in "$DIR"/*.pid; do
		[[ -e $file ]] || continue
		pid=$(<"$file")
		kill "$pid" 2>/dev/null || true
		for _ in {1..100}; do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.05
		done
		kill -9 "$pid" 2>/dev/null || true
		rm -f "$file"
	done
}

# start runs a server as number N, in the background.
start() { # N COMMAND...
	local n=$1
	shift
	"$@" >"$DIR/$n.log" 2>&1 &
	echo $! >"$DIR/$n.pid"
}

# restart is what a run begins with: so many new servers of a kind.
restart() { # KIND REPLICAS [CAPACITY]
	local kind=$1 replicas=$2 n
	stop
	for ((n = 0; n < replicas; n++)); do
		case $kind in
		slots)
			start "$n" "$RAGPILOT_LLAMA_SERVER" -m "$DIR/words.gguf" --host 127.0.0.1 --port $((PORT + n)) -t 1 -tb 1 -fa on \
				--parallel "$SLOTS" -c $((SLOTS * 16384)) --no-kv-unified --cache-ram 0
			;;
		pages)
			start "$n" "$DIR/ragpilot" bench upstream --listen "127.0.0.1:$((PORT + n))" --capacity "$3" --delay sim \
				--evict-url "http://127.0.0.1:$((PORT + 4))/$n"
			;;
		esac
	done
	for ((n = 0; n < replicas; n++)); do
		curl -sf -o /dev/null --retry 100 --retry-delay 0 --retry-all-errors --retry-max-time 30 "http://127.0.0.1:$((PORT + n))/health"
	done
}

if [[ ${1:-} == restart ]]; then
	restart "${@:2}"
	exit
fi

for program in curl python3 go; do
	command -v "$program" >/dev/null || { echo "not run: routing-real (no $program)"; exit 77; }
done
if [[ ! -d $traces ]]; then
	echo "not run: routing-real (no $traces beside the repository)"
	exit 77
fi
DIR=$(mktemp -d)
trap 'stop; rm -rf "$DIR"' EXIT
export DIR PORT SLOTS
CGO_ENABLED=0 go build -o "$DIR/ragpilot" ./cmd/ragpilot
kinds=("$@")
((${#kinds[@]})) || kinds=(slots pages)
if [[ " ${kinds[*]} " == *" slots "* ]]; then
	: "${RAGPILOT_LLAMA_SERVER:=$(ls -t "${XDG_CACHE_HOME:-$HOME/.cache}"/ragpilot-ci/llama-server-* 2>/dev/null | head -1)}"
	[[ -x $RAGPILOT_LLAMA_SERVER ]] || { echo "not run: routing-real (no llama-server: run .ci/llamacpp.sh first)"; exit 77; }
	export RAGPILOT_LLAMA_SERVER
	python3 docs/load/words_gguf.py "$DIR/words.gguf" $traces/*/blocks.jsonl
fi

# run compares the arms on 2 and 4 replicas of a kind.
run() { # KIND CAPACITY TRACE flags...
	local kind=$1 capacity=$2 trace=$3 replicas n table=docs/load/routing-real-$1-$3.txt
	: >"$DIR/table"
	for replicas in 2 4; do
		local engines=()
		for ((n = 0; n < replicas; n++)); do engines+=(--engine "http://127.0.0.1:$((PORT + n))"); done
		[[ $kind != pages ]] || engines+=(--evictions "127.0.0.1:$((PORT + 4))")
		"$DIR/ragpilot" bench route --trace "$traces/$trace/trace.jsonl" --blocks "$traces/$trace/blocks.jsonl" --max-tokens 2 \
			--arms joint,order+least-load,prefix-only \
			--reset "docs/load/routing-real.sh restart $kind $replicas $capacity" "${engines[@]}" "${@:4}" >>"$DIR/table"
	done
	cp "$DIR/table" "$table"
	awk -v name="$kind-$trace" -v file="$table" '
		index($0, "<!-- " name ": end -->") { skip = 0 }
		!skip
		index($0, "<!-- " name ": begin -->") { skip = 1; print "```"; while ((getline line < file) > 0) print line; print "```" }
	' docs/routing.md >"$DIR/routing.md"
	cat "$DIR/routing.md" >docs/routing.md
}

for kind in "${kinds[@]}"; do
	case $kind in
	slots) # prompts of about 1,000 tokens, and conversations that grow to about 5,000
		run slots 0 multihop-2wiki --arrivals closed:1,3,6 --k 5 --requests 520
		run slots 0 memory-locomo-k100 --arrivals closed:1,3,6 --k 20 --requests 520
		run slots 0 chat-mtragun --arrivals closed:1,3,6 --k 2 --requests 520
		;;
	pages) # a fifth of the trace in each cache; nothing is shortened
		run pages 740000 multihop-2wiki --arrivals closed:1,3,8
		run pages 810000 memory-locomo-k100 --arrivals closed:1,3,8
		run pages 540000 chat-mtragun --arrivals closed:1,3,8
		;;
	*)
		echo "routing-real: $kind: want slots or pages" >&2
		exit 2
		;;
	esac
done
