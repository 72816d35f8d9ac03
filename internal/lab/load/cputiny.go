package load

import "github.com/ragpilot/ragpilot/engines/sim"

// CPUTiny stands for vLLM 0.32.0 on one CPU core with a random Llama of 0.8 M parameters. The constants are those that [Fit]
// finds in docs/load/cpu-tiny.jsonl; a test compares them.
func CPUTiny() EngineModel {
	return EngineModel{
		Name:   "cpu-tiny",
		Origin: "fitted to vLLM 0.32.0 with a tiny model on one core",
		Cost: sim.StepCost{
			Step: 3602524.906, Prefill: 103842.056, PrefillContext: 31.570,
			Decode: 442464.650, DecodeContext: 126.847,
			Arrival: 16306870.134, ArrivalToken: 2776.205,
		},
		BatchTokens: 2048, MaxRunning: 8, BlockTokens: 32,
	}
}
