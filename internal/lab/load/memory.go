package load

import (
	"fmt"
	"math"

	"github.com/ragpilot/ragpilot/engines/sim"
)

// Memory says what lies behind an engine's memory, and how fast it is.
type Memory struct {
	HostTokens int     `json:"host_tokens"` // room in the host's memory
	DiskTokens int     `json:"disk_tokens"` // 0: no disk
	TokenBytes int     `json:"token_bytes"` // keys and values of a token, all layers
	Layers     int     `json:"layers"`
	Link       float64 `json:"link"`       // bytes/s between host and engine with large pieces, each way
	BlockRate  float64 `json:"block_rate"` // bytes/s of one thread block of a copying kernel
	DiskRate   float64 `json:"disk_rate"`  // bytes/s of the disk
}

// Copying says how keys and values are copied between the host's memory and the engine's.
type Copying string

// The ways of [Copying].
const (
	NoTiers Copying = "none" // not at all: what is evicted is gone
	DMA     Copying = "dma"  // a command for each piece of a page; layer by layer in all places
	GPU     Copying = "gpu"  // a kernel of two thread blocks, of one on the way back; pages in one piece elsewhere (Strata, §4.2)
)

func (m *Memory) check() error {
	if min(m.HostTokens, m.TokenBytes, m.Layers) < 1 || m.DiskTokens < 0 {
		return fmt.Errorf("memory: host_tokens %d, token_bytes %d, layers %d: want at least 1; disk_tokens %d: at least 0",
			m.HostTokens, m.TokenBytes, m.Layers, m.DiskTokens)
	}
	if m.Layers > 1e6 || m.TokenBytes > 1<<30 {
		return fmt.Errorf("memory: layers %d: want at most a million; token_bytes %d: at most 1 GiB", m.Layers, m.TokenBytes)
	}
	for _, x := range []struct {
		name  string
		value float64
		none  bool // may be 0
	}{{"link", m.Link, false}, {"block_rate", m.BlockRate, false}, {"disk_rate", m.DiskRate, m.DiskTokens == 0}} {
		if math.IsNaN(x.value) || math.IsInf(x.value, 0) || x.value < 0 || x.value < 1 && !x.none {
			return fmt.Errorf("memory: %s %v: want at least 1 byte a second", x.name, x.value)
		}
	}
	return nil
}

// tiers returns the tiers of a model.
func (m EngineModel) tiers(c Copying) (sim.Tiers, error) {
	if c == NoTiers || c == "" {
		return sim.Tiers{}, nil
	}
	x := m.Memory
	if x == nil {
		return sim.Tiers{}, fmt.Errorf("tiers %s: engine model %s says nothing of the memory behind the engine's", c, m.Name)
	}
	t := sim.Tiers{
		Host: sim.Tier{CapacityTokens: x.HostTokens}, TokenBytes: x.TokenBytes, Layers: x.Layers,
		Disk:     sim.Tier{CapacityTokens: x.DiskTokens, Load: sim.Copy{BytesPerSecond: x.DiskRate}},
		Prefetch: x.DiskTokens > 0,
	}
	switch c {
	case DMA:
		t.Host.Load, t.Host.Store = sim.DMA(x.Link, x.Layers), sim.DMA(x.Link, x.Layers)
		t.Disk.Load.Pieces, t.Disk.Load.Piece = 2*x.Layers, diskPiece
	case GPU:
		t.Host.Load, t.Host.Store = sim.GPUAssisted(x.Link, x.BlockRate, 2), sim.GPUAssisted(x.Link, x.BlockRate, 1)
		t.Disk.Load.Piece = diskPiece
	default:
		return sim.Tiers{}, fmt.Errorf("tiers %q: want %s, %s or %s", c, NoTiers, DMA, GPU)
	}
	return t, nil
}

const (
	terabyte = 1e12
	// What large copies reach of the 64 GB/s of PCIe 5.0, and the same share of the 384 GB/s of a GH200's link.
	pcie5, nvlink = 55e9, 330e9
	// Two thread blocks move nearly 50 GB/s on an H200 (Strata, Fig. 5). On a GH200 the paper reports 150 GB/s sustained.
	pcieBlock, nvlinkBlock = 25e9, 75e9
	// diskPiece are nanoseconds for each piece that is read from a disk: with them pages of 32 tokens of Llama-3.1-8B take up to 4 times as
	// long layer by layer as in one piece (Strata, §5.3.4), on a disk of 3.5e9 bytes/s, which is our assumption.
	diskPiece = 57e3
)

// shape are the published sizes of a model.
type shape struct {
	name               string
	params             float64
	layers, kv, hidden int // kv: heads of keys and values of 128 numbers each
}

// StrataMachines stand for the machines and models of Strata's evaluation (§5.1). All constants are arithmetic on data sheets, none
// is fitted to the paper's results:
//
//   - Prefill: 2 operations a parameter and token at half of 989e12 operations/s (H100, H200, bf16); PrefillContext: 4 × hidden × layers
//     operations for each token before, as fast. That engines reach half of the peak is our assumption.
//   - Step: the weights are read once, at 4.8e12 bytes/s (H200) or 3.35e12 (GH200, H100 with 96 GB).
//   - DecodeContext: keys and values of each token before, at the same rate.
//   - The cache has what 0.88 of the GPUs' memory leaves beside the weights, in pages of 16 tokens; SGLang prepares the next step before
//     the one under way has ended, and computes prompts and decodes in steps of their own.
//   - 1 TB of host memory (400 GB with the GH200), as in the paper.
func StrataMachines() []EngineModel {
	llama8B := shape{"llama-3.1-8b", 8.03e9, 32, 8, 4096}
	qwen14B := shape{"qwen2.5-14b", 14.77e9, 48, 8, 5120}
	llama70B := shape{"llama-3.1-70b", 70.6e9, 80, 8, 8192}
	const h200, gh200 = 4.8e12, 3.35e12
	return []EngineModel{
		machine("h200", qwen14B, 1, h200, 141e9, terabyte, pcie5, pcieBlock),
		machine("h200", llama8B, 1, h200, 141e9, terabyte, pcie5, pcieBlock),
		machine("h200x4", llama70B, 4, h200, 141e9, terabyte, pcie5, pcieBlock),
		machine("gh200", llama8B, 1, gh200, 96e9, 0.4*terabyte, nvlink, nvlinkBlock),
	}
}

func machine(name string, m shape, gpus, rate, size, host, link, block float64) EngineModel {
	const flops, reached, used = 989e12, 0.5, 0.88
	tokenBytes := m.layers * m.kv * 128 * 2 * 2
	speed := gpus * flops * reached / 1e9 // operations a nanosecond
	read := gpus * rate / 1e9             // bytes a nanosecond
	return EngineModel{
		Name:   name + "-" + m.name,
		Origin: "arithmetic on data sheets",
		Cost: sim.StepCost{
			Step: m.params * 2 / read, Prefill: 2 * m.params / speed, PrefillContext: 4 * float64(m.hidden*m.layers) / speed,
			DecodeContext: float64(tokenBytes) / read,
		},
		BatchTokens: sim.DefaultBatchTokens, MaxRunning: sim.DefaultMaxRunning, BlockTokens: sim.DefaultBlockTokens, Publish: 2,
		PrefillFirst:   true,
		CapacityTokens: int((gpus*size*used - m.params*2) / float64(tokenBytes)),
		Memory: &Memory{
			HostTokens: int(host / float64(tokenBytes)), TokenBytes: tokenBytes, Layers: m.layers, Link: gpus * link, BlockRate: gpus * block,
		},
	}
}
