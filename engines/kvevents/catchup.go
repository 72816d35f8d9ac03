package kvevents

import (
	"context"
	"errors"
)

// Bounds of catching up.
const (
	maxAsks      = 64       // questions for one gap
	patience     = 2        // questions in a row that bring nothing new, before a hole is given up
	sureAnswer   = 900      // a ROUTER socket drops nothing below 1,000 messages
	aheadBytes   = 32 << 20 // batches kept behind a hole
	aheadBatches = 1 << 16
)

// answer is what came of catching up.
type answer uint8

const (
	silence answer = iota // the engine was not reached, or broke off
	some                  // it answered, and may have left out the latest
	all                   // it answered with all that it had
)

func (h *history) ask(ctx context.Context, from uint64, each func(uint64, []byte) bool) (bool, error) {
	h.count(func(c *Counters) { c.Replays++ })
	done, err := h.replay.ask(ctx, from, each)
	if err != nil {
		h.count(func(c *Counters) { c.Failed++ })
	}
	h.failed(err)
	h.mu.Lock()
	h.foreign = errors.Is(err, errNotOurs)
	h.mu.Unlock()
	return done, err
}

// ahead holds batches behind a hole. Replay of releases before vLLM 0.33 leaves batches out without a word, others at
// another time: what came behind the first hole is kept until asking again has filled it.
type ahead struct {
	batches map[uint64][]byte
	bytes   int
}

func (a *ahead) put(seq uint64, payload []byte) {
	if _, ok := a.batches[seq]; ok || a.bytes+len(payload) > aheadBytes || len(a.batches) >= aheadBatches {
		return
	}
	a.batches[seq] = payload
	a.bytes += len(payload)
}

func (a *ahead) take(seq uint64) ([]byte, bool) {
	p, ok := a.batches[seq]
	if ok {
		delete(a.batches, seq)
		a.bytes -= len(p)
	}
	return p, ok
}

// first returns the lowest number.
func (a *ahead) first() (seq uint64, ok bool) {
	for s := range a.batches {
		if !ok || s < seq {
			seq, ok = s, true
		}
	}
	return seq, ok
}

// catchUp replays from number from on, which is the one that comes next or 0. Afterwards the history holds all that
// the engine could give. It asks again from the first hole as long as that brings something, and gives a hole up
// otherwise.
func (h *history) catchUp(ctx context.Context, from uint64) answer {
	if h.replay == nil {
		return silence
	}
	start := from
	if !h.replayed.any || h.replayed.to+1 != from { // live messages that wait may be of the replay before
		h.replayed = span{}
	}
	behind := ahead{batches: make(map[uint64][]byte)}
	idle := 0
	for asked := 0; asked < maxAsks && ctx.Err() == nil; asked++ {
		got := 0
		done, _ := h.ask(ctx, from, func(seq uint64, payload []byte) bool {
			got++
			if seq >= from && seq > h.next() {
				behind.put(seq, payload)
			} else if seq == h.next() {
				h.feed(seq, payload, &behind)
			}
			return ctx.Err() == nil
		})
		progress := h.next() > from
		from = h.next()
		if progress {
			idle = 0
		} else {
			idle++
		}
		for idle >= patience {
			hole, ok := behind.first()
			if !ok {
				break
			}
			h.skipTo(hole, start)
			p, _ := behind.take(hole)
			h.feed(hole, p, &behind)
			from = h.next()
			if _, more := behind.first(); more && done {
				continue // these were asked for as often
			}
			idle = 0
		}
		switch {
		case done && len(behind.batches) == 0 && got >= sureAnswer && progress && asked+1 < maxAsks:
			// The latest may have been left out: the next question tells.
		case done && len(behind.batches) == 0:
			h.set(func() { h.synced = true }, Starting)
			if got < sureAnswer {
				return all
			}
			return some
		case idle >= patience:
			return silence
		}
	}
	return silence
}

// feed applies a batch of a replay, and those behind it that are there.
func (h *history) feed(seq uint64, payload []byte, behind *ahead) {
	for ok := true; ok; payload, ok = behind.take(seq) {
		switch h.apply(seq, payload) {
		case stranger:
			return
		case spoilt:
			h.giveUp(seq, payload)
		case applied:
			h.count(func(c *Counters) { c.Replayed++ })
		}
		if !h.replayed.any {
			h.replayed = span{seq, seq, true}
		}
		h.replayed.to = seq
		seq++
	}
}

// skipTo gives up what is missing before seq.
func (h *history) skipTo(seq, start uint64) {
	cause := Gap
	if h.next() == start && start == 0 {
		cause, h.noStart = HistoryLost, true // the buffer begins there
	}
	h.lose(cause, seq-h.next())
	h.any, h.last = seq > 0, seq-1
}
