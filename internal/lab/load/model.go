package load

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/base/strictjson"
)

// EngineModel says how fast a simulated engine is, and how it makes its steps.
type EngineModel struct {
	Name string `json:"name"`
	// Origin says where the constants come from, for tables.
	Origin      string       `json:"origin"`
	Cost        sim.StepCost `json:"cost"`
	BatchTokens int          `json:"batch_tokens"` // of a step at most
	MaxRunning  int          `json:"max_running"`  // requests at a time
	BlockTokens int          `json:"block_tokens"` // of a cache block
	// CapacityTokens is the room for keys and values in its memory, where no other is asked for; 0: unlimited.
	CapacityTokens int `json:"capacity_tokens"`
	// Publish is that of [sim.ServerOptions].
	Publish int `json:"publish"`
	// PrefillFirst is that of [sim.ServerOptions].
	PrefillFirst bool `json:"prefill_first"`
	// Memory are the places behind the engine's memory; nil: none are known.
	Memory *Memory `json:"memory"`
}

// H100 stands for Qwen3-32B on four H100 GPUs. Only the prefill constant is published, the rest is arithmetic:
//
//   - Prefill: 1 / 14,708.6 tokens/s (ContextPilot, Table 2; see [sim.DefaultCost]). The average over whole prompts holds
//     attention, steps and what precedes the engine, so these have no constants of their own. The paper does not say how
//     many GPUs the model ran on; four is our assumption, and concerns decoding only.
//   - Step: each step reads the weights once. 32.8e9 parameters of 2 bytes over 4 × 3.35e12 bytes/s (NVIDIA's data sheet of
//     the H100 SXM) are 4.9 ms. Prefill hides that reading behind its arithmetic, so a step that also prefills is
//     charged somewhat too much.
//   - DecodeContext: each decoded token reads the KV entries before it. 64 layers × 8 KV heads × 128 × 2 (K and V) × 2 bytes = 256 KiB
//     a token (Qwen3-32B's published configuration) over the same bandwidth are 19.6 ns.
//   - Decode: the arithmetic of one more sequence is free until hundreds of them; 0.
//
// Steps of 8192 tokens and 1024 requests at a time are the defaults of vLLM 0.32.0's server on such GPUs; blocks have 16
// tokens. Of 320 GB, 0.9 are used; less the weights that is room for some 850,000 tokens, which is for the caller to set.
func H100() EngineModel {
	return EngineModel{
		Name:   "h100",
		Origin: "Qwen3-32B: prefill published, decoding derived",
		Cost: sim.StepCost{
			Step:          32.8e9 * 2 / (4 * 3.35e12) * 1e9,
			Prefill:       1e9 / 14708.6,
			DecodeContext: 64 * 8 * 128 * 2 * 2 / (4 * 3.35e12) * 1e9,
		},
		BatchTokens: sim.DefaultBatchTokens, MaxRunning: sim.DefaultMaxRunning, BlockTokens: sim.DefaultBlockTokens,
		Memory: &Memory{
			HostTokens: int(int64(terabyte) / (64 * 8 * 128 * 2 * 2)), TokenBytes: 64 * 8 * 128 * 2 * 2, Layers: 64,
			Link: 4 * pcie5, BlockRate: 4 * pcieBlock,
		},
	}
}

// ModelNames returns the names that [ReadModel] knows.
func ModelNames() []string {
	all := presets()
	names := make([]string, len(all))
	for i, m := range all {
		names[i] = m.Name
	}
	return names
}

func presets() []EngineModel { return append([]EngineModel{H100(), CPUTiny()}, StrataMachines()...) }

// ReadModel returns the preset of a name, or reads a model from a JSON file.
func ReadModel(name string) (EngineModel, error) {
	for _, m := range presets() {
		if m.Name == name {
			return m, nil
		}
	}
	if !strings.HasSuffix(name, ".json") {
		return EngineModel{}, fmt.Errorf("%q: want %s, or a file whose name ends in .json", name, strings.Join(ModelNames(), ", "))
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return EngineModel{}, err
	}
	m := EngineModel{Name: name}
	if err := strictjson.Decode(data, &m); err != nil {
		return EngineModel{}, fmt.Errorf("%s: %w", name, err)
	}
	if err := m.check(); err != nil {
		return EngineModel{}, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

func (m *EngineModel) check() error {
	c := m.Cost
	if min(c.Step, c.Prefill, c.PrefillContext, c.Decode, c.DecodeContext, c.Arrival, c.ArrivalToken) < 0 || c == (sim.StepCost{}) {
		return errors.New("the cost must not be negative, nor 0 altogether")
	}
	for _, x := range []struct {
		name  string
		value int
	}{
		{"batch_tokens", m.BatchTokens}, {"max_running", m.MaxRunning}, {"block_tokens", m.BlockTokens}, {"capacity_tokens", m.CapacityTokens},
	} {
		if x.value < 0 {
			return fmt.Errorf("%s %d: want at least 0", x.name, x.value)
		}
	}
	if m.Publish < 0 || m.Publish > 2 {
		return fmt.Errorf("publish %d: want 0, 1 or 2", m.Publish)
	}
	if m.Memory == nil {
		return nil
	}
	return m.Memory.check()
}

// Setup is a way to run a model's engine.
type Setup struct {
	Capacity int // tokens of its cache; 0: the model's
	Page     int // tokens of a block; 0: the model's
	Copying  Copying
	Order    sim.Order
}

// String names the setup in tables.
func (s Setup) String() string {
	name := string(cmp.Or(s.Copying, NoTiers))
	if s.Page > 0 {
		name += fmt.Sprintf("/%d", s.Page)
	}
	return name + "/" + s.Order.String()
}

// Server returns a server as fast as the model, with an empty cache of so many tokens, 0: the model's. It answers each
// request of a [Job] with as many tokens as the request allows.
func (m EngineModel) Server(capacity int, reply func(engines.Request) string) *sim.Server {
	s, _ := m.ServerOf(Setup{Capacity: capacity}, reply) // without tiers there is no error
	return s
}

// ServerOf returns a server that runs in a setup. It is an error if the model lacks what the setup needs.
func (m EngineModel) ServerOf(s Setup, reply func(engines.Request) string) (*sim.Server, error) {
	tiers, err := m.tiers(s.Copying)
	if err != nil {
		return nil, err
	}
	o := sim.ServerOptions{
		Options:     sim.Options{CapacityTokens: cmp.Or(s.Capacity, m.CapacityTokens), BlockTokens: cmp.Or(s.Page, m.BlockTokens), Reply: reply},
		BatchTokens: m.BatchTokens, MaxRunning: m.MaxRunning, StepCost: m.Cost, Publish: m.Publish, PrefillFirst: m.PrefillFirst,
		Order: s.Order, Tiers: tiers,
	}
	if o.CapacityTokens == 0 && s.Copying != NoTiers && s.Copying != "" {
		return nil, fmt.Errorf("tiers %s: the cache is unlimited, so nothing is evicted", s.Copying)
	}
	return sim.NewServer(o), nil
}

// Servers returns n of them, see [EngineModel.Server].
func (m EngineModel) Servers(n, capacity int, reply func(engines.Request) string) []*sim.Server {
	out := make([]*sim.Server, n)
	for i := range out {
		out[i] = m.Server(capacity, reply)
	}
	return out
}

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
