package doctor

import (
	"context"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// past is what an engine's replay socket gave.
type past struct {
	batches, events int
	bad             int // batches, and events in them, that could not be read
	holes           uint64
	first, last     uint64
}

// replayed asks a replay socket for what it has from a number on. It is asked even where nothing can be subscribed to,
// because engines listen there in any case.
func replayed(ctx context.Context, endpoint string, from uint64, wait time.Duration) (past, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*wait)
	defer cancel()
	var p past
	var decoder kvevents.Decoder
	_, err := kvevents.Replay(ctx, endpoint, from, wait, func(seq uint64, payload []byte) bool {
		p.take(&decoder, seq, payload)
		return true
	})
	return p, err
}

func (p *past) take(decoder *kvevents.Decoder, seq uint64, payload []byte) {
	if p.batches == 0 {
		p.first = seq
	} else if seq > p.last+1 {
		p.holes += seq - p.last - 1
	}
	p.last = seq
	p.batches++
	batch, err := decoder.Decode(payload)
	if err != nil {
		p.bad++
		return
	}
	p.events += len(batch.Events)
	p.bad += batch.Malformed
}

// next is the number of the batch that comes next.
func (p *past) next() uint64 {
	if p.batches == 0 {
		return 0
	}
	return p.last + 1
}
