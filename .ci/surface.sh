#!/usr/bin/env bash
# What users see of the programs: the help of every command, the settings of the configuration file, the routes and the metrics.
#   .ci/surface.sh            compares this tree with .ci/surface.txt: a change of it is a change for users
#   .ci/surface.sh -update    writes .ci/surface.txt
#   .ci/surface.sh REF        compares this tree with another commit
# Routes and metrics are read from string literals of the source, so a name that is put together from parts is not seen.
set -euo pipefail
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# help DEPTH COMMAND...: the help of a command, and of those below it.
help() {
	local program=$1 name
	shift
	echo "== ragpilot $*"
	"$program" "$@" --help
	for name in $("$program" "$@" --help | awk '/^Available Commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }'); do
		if [[ $name != help && $name != completion ]]; then help "$program" "$@" "$name"; fi
	done
}

# literals PATTERN: what string literals of product code match it, without quotes, formats and texts of messages.
literals() {
	git ls-files -z '*.go' | grep -zvE '_test\.go$|^\.ci/|^examples/' | xargs -0 cat | { grep -oE "\"$1" || true; } | cut -c2- | { grep -v '%\|:$' || true; } | sort -u
}

# surface DIR: all of it, of the tree in a folder.
surface() (
	cd "$1"
	go build -o "$tmp/ragpilot" ./cmd/ragpilot
	COLUMNS=200 HOME=/home/user XDG_CACHE_HOME="" help "$tmp/ragpilot"
	echo "== settings"
	git ls-files -z '*.go' | grep -zvE '_test\.go$' | xargs -0 cat | { grep -oE 'yaml:"[a-z_0-9]+' || true; } | sed 's/.*"//' | sort -u
	echo "== routes"
	literals '((GET|HEAD|POST|PUT|PATCH|DELETE) )?/(v1|mem0|ui|debug|metrics|health|ready|live|tokenize|detokenize|reorder|deduplicate|evict|reset|stats|requests|search|build|insert|docs|kv|trace|memories|configure|entities|users|slots|props|version|get_|server_|render|count|ping|is_|auth|api|admin|warm|contexts)[^" ]*'
	echo "== metrics"
	literals '(ragpilot_|vllm:|process_)[a-z0-9_]+'
)

case ${1:-} in
-update)
	surface . >.ci/surface.txt
	exit
	;;
"") surface . >"$tmp/now" && cp .ci/surface.txt "$tmp/before" ;;
*)
	mkdir "$tmp/tree"
	git -C "$tmp/tree" init -q
	git archive "$1" | tar -xf - -C "$tmp/tree"
	git -C "$tmp/tree" add -A
	surface "$tmp/tree" >"$tmp/before"
	surface . >"$tmp/now"
	;;
esac
if ! diff -u --label "${1:-.ci/surface.txt}" --label now "$tmp/before" "$tmp/now"; then
	echo "what users see has changed; if this is meant: .ci/surface.sh -update, and a line in CHANGELOG.md"
	exit 1
fi
awk '/^== / { section = $2 == "ragpilot" ? "commands" : $2; if (section == "commands") n[section]++; next }
	section == "commands" && /^ +(-[a-z], )?--/ { n["flags"]++ }
	section != "commands" { n[section]++ }
	END { printf "the same: %d commands, %d flags, %d settings, %d routes, %d metrics\n", n["commands"], n["flags"], n["settings"], n["routes"], n["metrics"] }' "$tmp/now"
