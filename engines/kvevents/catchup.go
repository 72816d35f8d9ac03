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
	h.note(func(s *Status) { s.Replays++ })
	done, err := h.replay.ask(ctx, from, each)
	if err != nil {
		h.note(func(s *Status) { s.Failed++ })
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
	if !h.replayed.any || h.replayed.to+1 != from { // live messages that wait may be of the replay before
		h.replayed = span{}
	}
	c := catching{history: h, start: from, from: from, behind: ahead{batches: make(map[uint64][]byte)}, left: maxAsks}
	for c.left > 0 && ctx.Err() == nil {
		c.ask(ctx)
		if c.other {
			h.forget()
			c = catching{history: h, behind: ahead{batches: make(map[uint64][]byte)}, left: c.left}
			continue
		}
		for c.step() == passHole {
			c.passHole()
		}
		switch c.step() {
		case finish:
			h.set(func() { h.synced = true }, Starting)
			if c.got < sureAnswer {
				return all
			}
			return some
		case giveUp:
			return silence
		}
	}
	return silence
}

// catching is the state of one catchUp.
type catching struct {
	*history
	start  uint64 // where it began
	from   uint64 // the first number of the next question
	behind ahead  // what lies behind the first hole
	left   int    // questions that may still be asked
	idle   int    // questions in a row that brought nothing new

	// The latest answer:
	got   int  // batches in it
	broke bool // it broke off
	other bool // it came from another process than the batches before
	ended bool // the engine marked its end
	news  bool // it brought the batch that was asked for
}

// step is what to do after an answer.
type step uint8

const (
	askAgain step = iota // from the first hole on
	passHole             // pass over the first hole
	finish               // the engine has no more
	giveUp               // the engine does not answer
)

// step returns the first row that fits; "in vain" are the questions in a row that brought nothing new:
//
//	behind a hole | answer ended | in vain    | then
//	batches       | -            | < patience | askAgain
//	batches       | -            | patience   | passHole
//	nothing       | yes          | -          | askAgain if it was long and brought news: sockets drop the latest of many
//	nothing       | yes          | -          | finish
//	nothing       | no           | < patience | askAgain
//	nothing       | no           | patience   | giveUp
func (c *catching) step() step {
	holes, inVain := len(c.behind.batches) > 0, c.idle >= patience
	switch {
	case holes && inVain:
		return passHole
	case !holes && c.ended && (c.got < sureAnswer || !c.news || c.left == 0):
		return finish
	case !holes && !c.ended && inVain:
		return giveUp
	}
	return askAgain
}

// ask asks one question. Behind an answer that broke off another process may answer: then the last batch that is known is asked for as
// well, and must be the same.
func (c *catching) ask(ctx context.Context) {
	c.left--
	c.got = 0
	from := c.from
	if c.broke && c.any && from == c.next() {
		from = c.last
	}
	var err error
	c.ended, err = c.history.ask(ctx, from, func(seq uint64, payload []byte) bool {
		if seq < c.from {
			c.other = c.other || seq == c.last && c.recent.look(seq, sum(payload)) == different
			return !c.other
		}
		c.got++
		if next := c.next(); seq > next && seq >= c.from {
			c.behind.put(seq, payload)
		} else if seq == next {
			c.feed(seq, payload)
		}
		return ctx.Err() == nil
	})
	c.broke = err != nil
	c.news = c.next() > c.from
	c.from = c.next()
	c.idle++
	if c.news {
		c.idle = 0
	}
}

// passHole gives up the first hole and applies what lies behind it. If the answer had ended, the holes behind it were
// asked for as often.
func (c *catching) passHole() {
	hole, _ := c.behind.first()
	c.skipTo(hole, c.start)
	payload, _ := c.behind.take(hole)
	c.feed(hole, payload)
	c.from = c.next()
	if !c.ended || len(c.behind.batches) == 0 {
		c.idle = 0
	}
}

// feed applies a batch of a replay, and those behind it that are there.
func (c *catching) feed(seq uint64, payload []byte) {
	h := c.history
	for ok := true; ok; payload, ok = c.behind.take(seq) {
		switch h.apply(seq, payload) {
		case stranger:
			return
		case spoilt:
			h.giveUp(seq, payload)
		case applied:
			h.note(func(s *Status) { s.Replayed++ })
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
