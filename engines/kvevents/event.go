package kvevents

import "strings"

// Kind says what happened to blocks.
type Kind uint8

const (
	// Stored: the engine holds a copy of each of the blocks.
	Stored Kind = iota + 1
	// Removed: the engine gave up a copy of each of the blocks.
	Removed
	// Cleared: the engine dropped all blocks, of all media and groups.
	Cleared
)

// String returns the kind in lower case.
func (k Kind) String() string {
	switch k {
	case Stored:
		return "stored"
	case Removed:
		return "removed"
	case Cleared:
		return "cleared"
	}
	return "unknown"
}

// Event is one event of an engine's cache. Fields that the engine's release does not send are zero.
type Event struct {
	Kind   Kind
	Hashes []Hash
	// Parent is the block before the first of Hashes; zero if these begin at the prompt's first token.
	Parent Hash
	// Tokens holds the tokens of all blocks, one after the other. Use [Event.Block] to cut it: it need not have
	// BlockSize tokens for each of Hashes.
	Tokens []int
	// Bigram: the engine counts in pairs of neighbouring tokens (EAGLE in SGLang). Tokens then holds the first of
	// each pair and, at the end, the second of the last.
	Bigram bool
	// BlockSize is the number of tokens (or pairs) of a block.
	BlockSize int
	// LoRA is the adapter's name, or its number in decimal from releases that send no name.
	LoRA string
	// Salt is SGLang's cache salt. vLLM has it in Extra.
	Salt []byte
	// Session is the session that the request which stored the block belongs to, if the client gave one.
	Session []byte
	// Extra holds for each block the further keys that its hash depends on, as MessagePack arrays; nil: none.
	Extra [][]byte
	// Medium is where the blocks lie: "GPU", "CPU", "CPU_PINNED", "DISK", "STORAGE", …; empty: GPU. See
	// [Event.OnGPU].
	Medium string
	// Locality is "REMOTE" for blocks that do not lie in this engine.
	Locality string
	// Group is the cache group of a hybrid model; 0 also if the engine has one group and does not number it.
	Group int
	// Spec is the group's kind of cache, "full_attention" for an ordinary one; empty: not known.
	Spec string
}

// OnGPU reports whether the event is about the memory from which the engine serves prefix hits without loading.
func (e *Event) OnGPU() bool {
	return (e.Medium == "" || strings.EqualFold(e.Medium, "GPU")) && !strings.EqualFold(e.Locality, "REMOTE")
}

// Sliced reports whether Tokens can be cut into one piece per hash.
func (e *Event) Sliced() bool {
	n := len(e.Tokens)
	if e.Bigram {
		n--
	}
	return e.BlockSize > 0 && len(e.Hashes) > 0 && n/e.BlockSize == len(e.Hashes) && n%e.BlockSize == 0
}

// Block returns the tokens of block i of a [Event.Sliced] event: BlockSize of them, or one more for pairs.
func (e *Event) Block(i int) []int {
	end := (i + 1) * e.BlockSize
	if e.Bigram {
		end++
	}
	return e.Tokens[i*e.BlockSize : end]
}

// NoRank is the rank of a batch that does not name one.
const NoRank = -1

// Batch is one message of an engine: what changed in its cache in one step.
type Batch struct {
	// Time is when the engine published it, in seconds since 1970 by the engine's clock. Nothing depends on it.
	Time float64
	// Rank is the data-parallel rank of the publisher, or [NoRank].
	Rank   int
	Events []Event
	// Unknown and Malformed count what was left out of Events: events of a type that this package does not know,
	// and events of a known type that do not have its shape.
	Unknown, Malformed int
}
