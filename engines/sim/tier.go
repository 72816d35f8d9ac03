package sim

import "time"

// Tiers are slower places behind the memory of a [Server]'s engine: what the engine's memory gives up goes to the host's, what that
// gives up to the disk. Keys and values are used in the engine's memory only, so they are loaded before a step computes. The zero value
// has none: what is evicted is gone. Tiers need an engine with a limit, [Options].CapacityTokens, and a disk needs a host.
//
// The model is that of Strata (Xie et al., §3 and §4): small pages cost time, loading overlaps with computing layer by layer,
// and a step stalls for what it cannot hide.
type Tiers struct {
	Host, Disk Tier
	// TokenBytes is the size of one token's keys and values, all layers together.
	TokenBytes int
	// Layers is the number of layers, one of which can be computed while the next is loaded; 0: a step loads first, then computes.
	Layers int
	// WriteBack copies a block to the host when the engine's memory evicts it, and the step waits for that. Otherwise it is copied in the
	// background when it has been computed (write-through).
	WriteBack bool
	// Prefetch reads blocks from the disk into the host's memory while their request waits, and stops when it is admitted: what is not
	// there by then is computed (§4.2.1). Without it the step that admits the request waits for the disk.
	Prefetch bool
}

// Tier is one of them.
type Tier struct {
	// CapacityTokens is its size in tokens, rounded down to whole blocks; less than one block: there is no such tier.
	CapacityTokens int
	// Load is the way up: from the host into the engine's memory, or from the disk into the host's. Store is the way down to the host;
	// writing to the disk is not modelled.
	Load, Store Copy
}

// Copy says how long it takes to move blocks one way, and how much it slows down what is computed meanwhile.
//
//	time = blocks × Pieces × Piece + bytes / BytesPerSecond
type Copy struct {
	BytesPerSecond float64 // of large pieces; 0: moving takes no time
	Pieces         int     // contiguous pieces that a block consists of; 0: 1
	Piece          float64 // nanoseconds that each piece takes beside its bytes
	// Prefill and Decode are the slowdown of steps with and without prompts: 0.05 makes computing take 5 % longer while the copy runs.
	Prefill, Decode float64
}

// The ways to copy between the memory of a GPU and that of its host. The engine's memory lies layer by layer, keys apart from values, so a
// block is 2 × layers pieces there.
const (
	// dmaPiece is what a copy command costs: with it and 55 GB/s, blocks of 32 tokens of Llama-3.1-8B (pieces of 64 KiB) reach 22 % of the
	// 64 GB/s of PCIe 5.0, as in Strata's Fig. 3. The other two figures of §3.1 follow: 5 % of the 384 GB/s of a GH200 there, and 73 and
	// 79 % of PCIe 5.0 with pieces of 1 and 2 MiB (75 to 80 in the paper).
	dmaPiece = 3460
	// A kernel's two thread blocks slow prefill down by less than 5 % and decoding by 10 % (Fig. 5). We take half of it for one of
	// them, and add up further ones, which is our assumption.
	blockPrefill, blockDecode = 0.025, 0.05
	// maxBlocks are as many as the model takes to add up.
	maxBlocks = 8
)

// DMA copies each piece with a command of its own (cudaMemcpyAsync), over a link with so many bytes a second.
func DMA(link float64, layers int) Copy {
	return Copy{BytesPerSecond: link, Pieces: 2 * layers, Piece: dmaPiece}
}

// GPUAssisted copies with a kernel of so many thread blocks, each of which moves rate bytes a second, over a link with so many. The
// kernel also converts between the engine's layout and one where blocks are contiguous (Strata, §4.2): small pieces cost nothing, but
// computing becomes slower. More than 8 thread blocks count as 8.
func GPUAssisted(link, rate float64, threadBlocks int) Copy {
	n := float64(min(threadBlocks, maxBlocks))
	return Copy{BytesPerSecond: min(link, n*rate), Prefill: n * blockPrefill, Decode: n * blockDecode}
}

// nanos returns how long so many blocks take.
func (c Copy) nanos(blocks, blockBytes int) float64 {
	if blocks == 0 || c.BytesPerSecond <= 0 {
		return 0
	}
	return float64(blocks)*float64(max(c.Pieces, 1))*c.Piece + float64(blocks)*float64(blockBytes)/c.BytesPerSecond*1e9
}

// Transfers counts what a [Server] moved between its tiers, in tokens.
type Transfers struct {
	Host   int // loaded from the host into the engine's memory
	Disk   int // of requests that were admitted: loaded from the disk, and counted in Host, too
	Stored int // copied from the engine's memory to the host
	Spill  int // written to the disk
	Ahead  int // read from the disk ahead of a request
	// Stall is the time by which steps took longer than computing alone, Load the time that loading took. Deferred counts, for each step,
	// the requests that waited for another one to compute their prefix.
	Stall, Load time.Duration
	Deferred    int
}

// Add adds what another server moved.
func (t *Transfers) Add(x Transfers) {
	t.Host += x.Host
	t.Disk += x.Disk
	t.Stored += x.Stored
	t.Spill += x.Spill
	t.Ahead += x.Ahead
	t.Stall += x.Stall
	t.Load += x.Load
	t.Deferred += x.Deferred
}

// moved is what one step moves, in blocks.
type moved struct {
	host, disk int // to load
	back       int // to write back before the step begins
	stored     int // in the background
}

// load returns how long loading takes before or while the step computes, in nanoseconds.
func (t *Tiers) load(m moved, blockBytes int) float64 {
	return t.Host.Load.nanos(m.host, blockBytes) + t.Disk.Load.nanos(m.disk, blockBytes) + t.Host.Store.nanos(m.back, blockBytes)
}

// slowed returns how long computing takes while so much loading and storing goes on.
func (t *Tiers) slowed(w Work, compute, load, store float64) float64 {
	slow := func(c Copy, d float64) float64 {
		share := c.Decode
		if w.PrefillTokens > 0 {
			share = c.Prefill
		}
		return share * min(d, compute)
	}
	return compute + slow(t.Host.Load, load) + slow(t.Host.Store, store)
}

// overlapped returns how long a step takes whose computing and loading take so long by themselves.
func (t *Tiers) overlapped(compute, load float64) float64 {
	if t.Layers == 0 {
		return compute + load
	}
	// A layer is computed when it is loaded and the one before it is computed: all layers but one of the shorter side are hidden.
	return max(compute, load) + min(compute, load)/float64(t.Layers)
}
