#!/usr/bin/env bash
# The official SDKs of OpenAI and Anthropic, in Go and Python, as they are, through the program as it is: real processes,
# in front of "ragpilot bench upstream", of "ragpilot engine serve" and of a scripted fake (.ci/sdk/stage/doc.go). One line a scenario.
# RAGPILOT_BIN names a program to try in place of the one built here.
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d) group="" preparing=""
trap 'for g in $group $preparing; do kill -- "-$g" 2>/dev/null || true; done; rm -rf "$tmp"' EXIT
export CGO_ENABLED=0 TMPDIR=$tmp

offline='dial tcp|no such host|proxyconnect|Forbidden|i/o timeout|connection refused|GOPROXY=off|NewConnectionError|ProxyError|Retrying \(|Connection to .* timed out'

# alone runs a command in a process group of its own, and ends what it leaves behind: a test that panics stops no processes.
alone() {
	local code=0
	set -m
	"$@" &
	group=$!
	set +m
	wait "$group" || code=$?
	kill -- "-$group" 2>/dev/null || true
	group=""
	return "$code"
}

# report <log> <what>: shows why something could not be prepared. It returns 77 if that is for want of a network.
report() {
	tail -20 "$1"
	if grep -qE "$offline" "$1"; then
		echo "not run: $2 (see above)"
		return 77
	fi
	return 1
}

# prepare_python installs what requirements.txt says, once per version of that and of Python.
prepare_python() {
	local start=$SECONDS
	if [[ -z $venv ]]; then
		echo "not run: Python SDKs (no python3 of version 3.10 or later)"
		return 77
	fi
	if [[ -x $venv/bin/python ]]; then
		echo "Python: warm, 0 s"
		return
	fi
	mkdir -p "${venv%/*}"
	part=$(mktemp -d "$venv.XXXXXX") # renamed when complete: two runs at once do not meet
	trap 'rm -rf "$part"' EXIT
	if ! python3 -m venv "$part" >"$tmp/venv" 2>&1; then
		tail -5 "$tmp/venv"
		echo "not run: Python SDKs (python3 makes no virtual environment, see above)"
		return 77
	fi
	if ! "$part/bin/python" -m pip install --quiet --no-input --disable-pip-version-check --retries 1 --timeout 20 --only-binary :all: \
		-r .ci/sdk/python/requirements.txt >"$tmp/pip" 2>&1; then
		report "$tmp/pip" "Python SDKs"
		return
	fi
	[[ -e $venv ]] || mv "$part" "$venv"
	echo "Python: cold, installed in $((SECONDS - start)) s"
}

go_half() {
	local start=$SECONDS code=0
	if ! GOGC=400 go test -C .ci/sdk -c -ldflags '-s -w' -o "$tmp/golang.test" ./golang >"$tmp/log" 2>&1; then
		report "$tmp/log" "Go SDKs"
		return
	fi
	echo "Go: built in $((SECONDS - start)) s"
	alone "$tmp/golang.test" -test.v -test.timeout 3m >"$tmp/log" 2>&1 || code=$?
	# "    --- PASS: TestErrors/openai_chat:_500,_then_the_answer (0.47s)" becomes "ok      go      Errors: openai chat: 500, then the answer".
	sed -nE 's/^ +--- PASS: Test([^/]+)\/(.*) \([0-9.]+s\)$/ok      go      \1: \2/p
		s/^ +--- FAIL: Test([^/]+)\/(.*) \([0-9.]+s\)$/FAILED  go      \1: \2/p
		s/^ *--- SKIP: Test(.*) \([0-9.]+s\)$/not run go      \1/p' "$tmp/log" | tr _ ' '
	if ((code != 0)); then grep -vE '^=== |^ *--- PASS' "$tmp/log" || true; fi
	return "$code"
}

python_half() {
	local code=0
	wait "$preparing" || code=$?
	preparing=""
	cat "$tmp/python"
	if ((code != 0)); then return "$code"; fi
	go build -C .ci/sdk -o "$tmp/sdk" . || return 1
	alone "$tmp/sdk" "$RAGPILOT_BIN" "$venv/bin/python" .ci/sdk/python/test_sdk.py
}

venv=""
if command -v python3 >/dev/null && python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
	key=$({ python3 -VV; cat .ci/sdk/python/requirements.txt; } | git hash-object --stdin)
	venv=${XDG_CACHE_HOME:-$HOME/.cache}/ragpilot-ci/sdk-python-${key:0:16}
fi
set -m # a process group of its own
prepare_python >"$tmp/python" 2>&1 & # while Go compiles
preparing=$!
set +m

if [[ -n ${RAGPILOT_BIN:-} ]]; then
	RAGPILOT_BIN=$(realpath "$RAGPILOT_BIN")
else
	RAGPILOT_BIN=$tmp/ragpilot
	go build -o "$RAGPILOT_BIN" ./cmd/ragpilot
fi
go run ./internal/testkit/tinymodel "$tmp/tiny.gguf"
export RAGPILOT_BIN RAGPILOT_TINY_MODEL=$tmp/tiny.gguf

result=77
for half in go_half python_half; do
	code=0
	"$half" || code=$?
	case $code in
	0) if ((result == 77)); then result=0; fi ;;
	77) ;;
	*) result=1 ;;
	esac
done
exit "$result"
