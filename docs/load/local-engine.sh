#!/usr/bin/env bash
# The local engine beside llama.cpp on one thread, in every format that both have, in turn on the same machine. Needs Python with
# llama-cpp-python 0.3.36 (PYTHON names it; to compile it takes some minutes) and the model. The machine should have nothing else to do.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -c 'import llama_cpp' 2>/dev/null || { echo "not run: $python has no llama_cpp"; exit 77; }
CGO_ENABLED=0 go build -o "$work/ragpilot" ./cmd/ragpilot
source=$("$work/ragpilot" model pull smollm2)
lscpu | sed -n 's/^Model name: */processor: /p'
cp "$source" "$work/Q4_1.gguf"
for format in F32 F16 Q8_0 Q4_0; do
	"$python" docs/load/local-engine.py make "$source" "$format" "$work/$format.gguf" 2>/dev/null
done
export PROMPTS=${PROMPTS:-512,2048,4096} RUNS=${RUNS:-3}
for format in ${FORMATS:-F32 F16 Q8_0 Q4_0 Q4_1}; do
	echo "== $format"
	for flash in plain flash; do
		"$python" docs/load/local-engine.py run "$work/$format.gguf" $flash 2>/dev/null | sed "s/^/llama.cpp, $flash attention: /"
	done
	"$work/ragpilot" bench local --model "$work/$format.gguf" --prompt "$PROMPTS" --runs "$RUNS" | sed 's/^/ragpilot: /'
done
