package kvevents

import "github.com/zeebo/xxh3"

// recentBatches is how far back a message can be recognized as a duplicate, late, or of another process.
const recentBatches = 1024

// recent remembers what the latest batches were, by number.
type recent struct {
	at  [recentBatches]fingerprint
	end uint64 // one more than the highest number
}

type fingerprint struct {
	seq uint64
	sum uint64
	is  bool
}

func sum(payload []byte) uint64 { return xxh3.Hash(payload) }

func (r *recent) put(seq, sum uint64) {
	r.at[seq%recentBatches] = fingerprint{seq, sum, true}
	r.end = max(r.end, seq+1)
}

func (r *recent) reset() { *r = recent{} }

// verdict says what a batch is, in the light of the recent ones.
type verdict uint8

const (
	unknown   verdict = iota // too old to know
	same                     // it was applied
	different                // another batch with its number was applied
	hole                     // nothing with its number was applied
)

func (r *recent) look(seq, sum uint64) verdict {
	if seq+recentBatches < r.end || r.end == 0 {
		return unknown
	}
	switch f := r.at[seq%recentBatches]; {
	case !f.is || f.seq != seq:
		return hole
	case f.sum == sum:
		return same
	}
	return different
}
