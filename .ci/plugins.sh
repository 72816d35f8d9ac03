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

# Each plugin is installed by itself, so what they share is there twice.
result=0
for shared in reporter.py hooks.py; do
	cmp "engines/vllm/plugin/ragpilot_vllm/$shared" "engines/sglang/plugin/ragpilot_sglang/$shared" || result=1
done
for shared in receiver.py test_reporter.py; do
	cmp "engines/vllm/plugin/tests/$shared" "engines/sglang/plugin/tests/$shared" || result=1
done

# run <engine> <python> <modules…>: unit tests in the plugin's folder.
run() {
	local engine=$1 python=$2 code=0 out
	shift 2
	out=$(cd "engines/$engine/plugin" && timeout 300 "$python" -W ignore -m unittest "$@" 2>&1) || code=$?
	if ((code != 0)); then
		echo "$out"
		echo "FAILED  $engine $*"
		result=1
	elif grep -q skipped= <<<"$out"; then
		echo "not run: $engine $* ($("$python" --version): $(cd "engines/$engine/plugin" && "$python" -W ignore -m unittest -v "$@" 2>&1 | sed -n "s/.*skipped ['\"]\(.*\)['\"]$/\1/p" | sort -u | head -1))"
	else
		echo "ok      $engine $*: $(grep -o 'Ran [0-9]* tests*' <<<"$out") $(grep -oE '(vLLM|SGLang) [0-9][0-9.]*' <<<"$out" || true)"
	fi
}

for engine in vllm sglang; do
	run "$engine" python3 tests.test_reporter "tests.test_$engine"
	for python in ${PLUGIN_PYTHON:-python3}; do
		run "$engine" "$python" "tests.test_real_$engine"
	done
done
exit "$result"
