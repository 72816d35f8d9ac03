#!/usr/bin/env bash
# The Python plugins that run inside engines: their unit tests against fakes of the engines. "plugins.sh vllm PYTHON" and
# "plugins.sh sglang PYTHON" run a plugin in the engine's own cache instead, with a Python that has the engine; make engine-test does that.
set -euo pipefail
cd "$(dirname "$0")/.."
unset RAGPILOT_URL RAGPILOT_PLUGIN_KEY RAGPILOT_PLUGIN_REQUESTS RAGPILOT_PLUGIN_PREFIX
export PYTHONDONTWRITEBYTECODE=1

python=python3
modules=(tests.test_reporter tests.test_register tests.test_vllm tests.test_sglang)
if (($# > 0)); then python=$2 modules=("tests.test_real_$1"); fi

if ! command -v "$python" >/dev/null || ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))'; then
	echo "not run: ${modules[*]} (no $python of version 3.9 or later)"
	exit 77
fi

code=0
out=$(cd engines/plugin && timeout 300 "$python" -W ignore -m unittest -v "${modules[@]}" 2>&1) || code=$?
if ((code != 0)); then
	echo "$out"
	echo "FAILED  ${modules[*]}"
	exit 1
fi
if grep -q skipped= <<<"$out"; then
	echo "not run: ${modules[*]} ($("$python" --version): $(sed -n "s/.*skipped ['\"]\(.*\)['\"]$/\1/p" <<<"$out" | sort -u | head -1))"
	exit 77
fi
echo "ok      ${modules[*]}: $(grep -o 'Ran [0-9]* tests*' <<<"$out") $(grep -oE '(vLLM|SGLang) [0-9][0-9.]*' <<<"$out" || true)"
