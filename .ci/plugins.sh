#!/usr/bin/env bash
# The Python plugins that run inside engines: their unit tests against fakes of the engines, and the same plugins in the
# engines' own caches where these can be imported. PLUGIN_PYTHON names the Pythons to try for that, "python3" by itself.
set -euo pipefail
cd "$(dirname "$0")/.."
unset RAGPILOT_URL RAGPILOT_PLUGIN_KEY RAGPILOT_PLUGIN_REQUESTS RAGPILOT_PLUGIN_PREFIX
export PYTHONDONTWRITEBYTECODE=1

if ! command -v python3 >/dev/null || ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))'; then
	echo "not run: plugins (no python3 of version 3.9 or later)"
	exit 77
fi

result=0

# run <python> <modules…>: unit tests in the plugin's folder.
run() {
	local python=$1 code=0 out
	shift
	out=$(cd engines/plugin && timeout 300 "$python" -W ignore -m unittest "$@" 2>&1) || code=$?
	if ((code != 0)); then
		echo "$out"
		echo "FAILED  $*"
		result=1
	elif grep -q skipped= <<<"$out"; then
		echo "not run: $* ($("$python" --version): $(cd engines/plugin && "$python" -W ignore -m unittest -v "$@" 2>&1 | sed -n "s/.*skipped ['\"]\(.*\)['\"]$/\1/p" | sort -u | head -1))"
	else
		echo "ok      $*: $(grep -o 'Ran [0-9]* tests*' <<<"$out") $(grep -oE '(vLLM|SGLang) [0-9][0-9.]*' <<<"$out" || true)"
	fi
}

run python3 tests.test_reporter tests.test_register tests.test_vllm tests.test_sglang
for engine in vllm sglang; do
	for python in ${PLUGIN_PYTHON:-python3}; do
		run "$python" "tests.test_real_$engine"
	done
done
exit "$result"
