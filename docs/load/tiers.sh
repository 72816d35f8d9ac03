#!/usr/bin/env bash
# The figures of docs/tiers.md: Strata's comparisons in the simulator. All are a model's. Some 15 minutes on two cores. Arguments name parts;
# without any, all run.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=docs/load/tiers
mkdir -p "$out" .cache
CGO_ENABLED=0 go build -o .cache/ragpilot-tiers ./cmd/ragpilot
parts=("$@")

# part NAME FLAGS...: runs replay, and keeps what it prints behind the command.
part() {
	local name=$1
	shift
	[[ ${#parts[@]} == 0 || " ${parts[*]} " == *" $name "* ]] || return 0
	{
		echo "\$ ragpilot replay $*"
		.cache/ragpilot-tiers replay "$@"
	} >".cache/tiers-$name"
	mv ".cache/tiers-$name" "$out/$name.txt"
	echo "$name"
}
loogle="--workload loogle --engine-model h200-qwen2.5-14b --page 32 --seeds 5"
# shellcheck disable=SC2086
{
	# Fig. 9: peak throughput, each idea by itself, and together.
	part ideas $loogle --arrivals closed:128 --tiers dma,gpu --order fifo,lpm,defer,balance,bubble,strata
	# Fig. 9: curves.
	part curves $loogle --arrivals poisson:0.5,1,2,3,4,6,8 --in-flight 128 --tiers none,dma,gpu --order fifo,strata --plot .cache/tiers
	# Fig. 11: distances. The first setup of each part is what the others are compared with.
	for distance in minimal shuffled maximal; do
		at="$loogle --distance $distance --arrivals closed:128"
		part "$distance-deferral" $at --tiers none --order fifo,defer
		part "$distance-tiers" $at --tiers none,dma,gpu --order fifo
		part "$distance-copies" $at --tiers dma,gpu --order fifo
		part "$distance-batches" $at --tiers gpu --order defer,defer+balance
		part "$distance-bubbles" $at --tiers gpu --order defer+balance,strata
	done
	# Fig. 10: page sizes.
	for page in 16 32 64 128 256 512 1024; do
		part "page-$page" --workload loogle --engine-model h200-qwen2.5-14b --page $page --seeds 5 --arrivals closed:128 --tiers gpu,dma
	done
	# Fig. 8: the largest rate at which the 95th percentile of the time to the first token is within a bound.
	for machine in h200-llama-3.1-8b h200-qwen2.5-14b h200x4-llama-3.1-70b gh200-llama-3.1-8b; do
		rate="--engine-model $machine --page 32 --seeds 5 --in-flight 128 --tiers dma,gpu --order fifo,strata --find-rate"
		part "loogle-$machine" --workload loogle --warm $rate --arrivals poisson:4 --slo 10s
		part "narrativeqa-$machine" --workload narrativeqa --warm $rate --arrivals poisson:1 --slo 10s
		part "reviewmt-$machine" --workload reviewmt $rate --arrivals poisson:0.3 --slo 10s
	done
	# Short contexts.
	part sharegpt --workload sharegpt --engine-model h200-llama-3.1-8b --capacity 500000 --seeds 5 --in-flight 128 --tiers dma,gpu --order fifo,strata \
		--arrivals poisson:1,5,10,15
}
if [[ -f .cache/tiers/ttft.svg ]]; then
	cp .cache/tiers/ttft.svg "$out/ttft.svg"
	cp .cache/tiers/output.svg "$out/output.svg"
fi
