#!/usr/bin/env bash
# The kernels for cards, and all code with the tag cuda, on a machine without a card. CUDA's compiler makes the PTX that is committed, and
# ptxas code for two kinds of cards, without registers in memory. The tests run with an emulated driver (internal/nn/gpu/cuda/emulator), which
# runs the kernels on the CPU: streams as late as can be, with threads in the opposite order, and with RAGPILOT_LONG=1 also at once, in order.
# The program is built with headers of CUDA 12, and then of 13, too. ".ci/gpu.sh -update" writes internal/nn/gpu/cuda/kernels.ptx and does
# nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

cuda=internal/nn/gpu/cuda
# With the last two, net and os/user are the same as without cgo, and so is what imports them: it need not be compiled again.
tags=cuda,netgo,osusergo
tmp=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$tmp"' EXIT

missing() {
	echo "not run: kernels and the tag cuda ($1)"
	exit 77
}

# took NAME COMMAND...: runs it and prints its seconds.
took() {
	local name=$1 start=$SECONDS
	shift
	"$@"
	echo "ok      $name ($((SECONDS - start)) s)"
}

ptx() { # update or check
	python3 .ci/gpu/nvrtc.py "$1" "$wheels/nvidia_cuda_nvrtc_cu12/nvidia/cuda_nvrtc/lib" $cuda/kernels.ptx $cuda/kernels/*.cu
}

# assemble compiles for two kinds of cards at once and prints the most registers. Registers that do not fit ("spills") make a kernel slow.
assemble() {
	local arch pids=()
	for arch in sm_80 sm_90; do
		"$wheels/nvidia_cuda_nvcc_cu12/nvidia/cuda_nvcc/bin/ptxas" -v -arch=$arch -o "$tmp/$arch.o" $cuda/kernels.ptx >"$tmp/$arch" 2>&1 &
		pids+=($!)
	done
	for arch in sm_80 sm_90; do
		wait "${pids[0]}" || { cat "$tmp/$arch" && return 1; }
		pids=("${pids[@]:1}")
		awk -v arch=$arch '
			/Function properties for/ { name = $NF }
			/bytes stack frame/ && !/ 0 bytes spill stores, 0 bytes spill loads/ { print "kernel " name " for " arch " spills: " $0; failed = 1 }
			/Used [0-9]+ registers/ {
				n++
				for (i = 1; i <= NF; i++) if ($i == "Used") used = $(i + 1)
				if (used >= 64) many = many " " name " " used
				if (used > most) most = used
			}
			/warning/ { print; failed = 1 }
			END {
				if (!n) { print "ptxas named no kernel for " arch; failed = 1 }
				print "        " arch ": " n " kernels, at most " most " registers, no spills; 64 and more:" (many ? many : " none")
				exit failed
			}' "$tmp/$arch"
	done
}

emulate() {
	emulator=$($cuda/emulator/libcuda/build.sh)
}

# lint leaves what needs the types of all that is imported to the step "long".
lint() {
	local bin fast=(--fast-only)
	bin=$(.ci/tools.sh)
	if [[ ${RAGPILOT_LONG:-} == 1 ]]; then fast=(); fi
	"$bin/golangci-lint" run --build-tags $tags "${fast[@]}" ./internal/nn/gpu/... ./engines/local/... ./cmd/ragpilot
}

# tests runs them, with RAGPILOT_LONG=1 in two ways at the same time: the emulated driver uses one core.
tests() {
	local code=0 lazy orders=(lazy)
	LD_LIBRARY_PATH=$emulator go test -tags $tags -run '^$' ./internal/nn/gpu/... >/dev/null 2>&1 || true # compiles them once
	once() { # ORDER THREADS
		LD_LIBRARY_PATH=$emulator RP_EMU_ORDER=$1 RP_EMU_THREADS=$2 go test -tags $tags -json -count=1 -timeout 8m ./internal/nn/gpu/... \
			2>"$tmp/$1.stderr" | "$tmp/testreport" -forbid-skip "emulated driver" || { cat "$tmp/$1.stderr" && return 1; }
	}
	once lazy descending >"$tmp/lazy" &
	lazy=$!
	if [[ ${RAGPILOT_LONG:-} == 1 ]]; then
		orders+=(eager)
		once eager ascending >"$tmp/eager" || code=1
	fi
	wait "$lazy" || code=1
	for order in "${orders[@]}"; do sed "s/^/$order: /; s/^$order: not run/not run/" "$tmp/$order"; done
	return "$code"
}

# engine runs the local engine on the emulated card: what is only for cards, and some of what holds on any device.
engine() {
	LD_LIBRARY_PATH=$emulator go test -tags $tags -json -count=1 -timeout 8m ./engines/local ./engines/local/internal/llama ./cmd/ragpilot \
		-run 'CUDA|Card|^Test(Reuse|ContextOfAllTokens|TogetherIsOnce|Preemption|MovedToDisk|Attention|Score|Best)$' \
		-skip SmolLM2 2>"$tmp/engine.stderr" | "$tmp/testreport" -forbid-skip "emulated driver" || { cat "$tmp/engine.stderr" && return 1; }
}

build_for() {
	local variables GOGC=400
	export GOGC
	variables=$(.ci/gpu/driver.sh "$1")
	eval "$variables"
	go build -tags $tags ./internal/nn/gpu/...
	go build -tags $tags -o "$tmp/ragpilot-$1" ./cmd/ragpilot
	LD_LIBRARY_PATH=$emulator "$tmp/ragpilot-$1" --help >/dev/null
}

wheels=$(.ci/gpu/wheels.sh) || exit
if [[ ${1:-} == -update ]]; then
	ptx update
	exit
fi
command -v "${CXX:-g++}" >/dev/null || missing "no C++ compiler ${CXX:-g++}"
took "PTX is what the kernels compile to" ptx check
took "code for cards" assemble
took "emulated driver" emulate
variables=$(.ci/gpu/driver.sh) || exit
eval "$variables"
go build -C .ci/tools -o "$tmp/testreport" ./testreport
took "engine" engine >"$tmp/engine" 2>&1 & # the emulated driver uses one core
running=$!
took "linter" lint
took "tests" tests
code=0
wait "$running" || code=$?
cat "$tmp/engine"
((code == 0))
took "program with CUDA 12" build_for 12
if [[ ${RAGPILOT_LONG:-} == 1 ]]; then took "program with CUDA 13" build_for 13; fi
