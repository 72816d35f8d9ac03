package kvevents

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/zeebo/xxh3"
)

// history is what one publisher has published so far. It makes one ordered stream without holes of live messages and of
// replays, or knows that there are holes. One goroutine uses it; others read the status.
//
// Live messages are in this file, replays in catchup.go, asking once more in repair.go, the status in completeness.go.
type history struct {
	pub     Publisher
	sink    Sink
	replay  replayer // nil: none
	started func(context.Context) (float64, error)
	now     func() time.Time
	dec     Decoder

	any    bool   // there is a last batch
	last   uint64 // its number
	recent recent

	live       uint64 // number of the last live message of this connection
	anyLive    bool
	doubts     int    // live messages in a row whose number was not believed
	late       uint64 // number of the last message that came after its hole was given up
	lateAny    bool
	replayed   span // what the latest replays brought, one behind the other
	met        bool // there was a connection before
	process    float64
	knownProc  bool
	noStart    bool      // the replay buffer no longer reaches back to the process's start
	unanswered bool      // replay did not answer when it was needed
	repairs    int       // resyncs because of the sink
	nextSync   time.Time // no resync of its own before
	syncWait   time.Duration
	firstSync  time.Duration

	reported bool // the last report of completeness to the sink

	mu     sync.Mutex // guards what follows
	status Status
	synced bool   // everything up to now was asked for
	behind bool   // messages were dropped since
	beyond uint64 // number of the last of them
	lossy  Cause  // why something is missing for good, 0: nothing is

	silent  bool      // replay has batches and the live stream has none
	foreign bool      // the latest answer to replay may have been another engine's
	clashed time.Time // when another engine was heard under the topic
}

// span is an inclusive range of numbers, if any.
type span struct {
	from, to uint64
	any      bool
}

func (s span) has(seq uint64) bool { return s.any && s.from <= seq && seq <= s.to }

func newHistory(pub Publisher, sink Sink, replay replayer, now func() time.Time) *history {
	h := &history{pub: pub, sink: sink, replay: replay, now: now}
	h.status.Publisher = pub
	h.status.Windows = []Window{{From: now(), Cause: Starting}}
	return h
}

// next is the number of the batch that comes next.
func (h *history) next() uint64 {
	if !h.any {
		return 0
	}
	return h.last + 1
}

// note changes the status.
func (h *history) note(change func(s *Status)) {
	h.mu.Lock()
	change(&h.status)
	h.mu.Unlock()
}

// connected is called for each connection, before its first message.
func (h *history) connected(ctx context.Context) {
	h.note(func(s *Status) { s.Connects++; s.Connected = true })
	h.anyLive, h.replayed = false, span{}
	again := h.met && h.any
	h.met = true
	before, known := h.process, h.knownProc
	h.askProcess(ctx)
	known = known && h.knownProc
	switch {
	case !again:
		h.catchUp(ctx, h.next())
	case known && before != h.process:
		h.restart(ctx)
	case h.replay != nil:
		h.verify(ctx, known)
	case !known:
		h.clear(Reconnected)
	}
	h.check(ctx)
}

func (h *history) askProcess(ctx context.Context) {
	h.knownProc = false
	if h.started == nil {
		return
	}
	t, err := h.started(ctx)
	h.process, h.knownProc = t, err == nil
	if err != nil {
		h.failed(err)
	}
}

// verify asks for the last batch once more: a process that has another one under its number, or none, or begins
// later, is not known to be the same. If there is no answer, what is known of the process decides.
func (h *history) verify(ctx context.Context, known bool) {
	var first uint64
	var answered bool
	var is verdict
	done, err := h.ask(ctx, h.last, func(seq uint64, payload []byte) bool {
		if seq < h.last {
			return true
		}
		first, answered, is = seq, true, h.recent.look(seq, sum(payload))
		return false
	})
	switch {
	case answered && first == h.last && (is == same || known && is != different), err != nil && !answered && known:
		h.catchUp(ctx, h.next())
	case answered && first == h.last, done && !answered:
		h.restart(ctx)
	case !answered:
		h.clear(Reconnected)
	default: // its buffer begins behind what we know
		h.clear(HistoryLost)
		h.catchUp(ctx, 0)
	}
}

func (h *history) disconnected() {
	h.note(func(s *Status) { s.Connected = false })
	h.set(func() { h.synced = false }, Disconnected)
}

// message takes a live one.
func (h *history) message(ctx context.Context, seq uint64, payload []byte) {
	h.note(func(s *Status) { s.Messages++; h.silent = false })
	if seq < h.next() && !h.repeated(ctx, seq, payload) {
		return
	}
	if seq > h.next() {
		if ok, ours := h.readable(payload); ok && !ours || !h.gap(ctx, seq) {
			return
		}
	}
	h.reached(seq)
	h.take(ctx, seq, payload)
}

// reached notes how far the live stream is.
func (h *history) reached(seq uint64) {
	h.doubts = 0
	if !h.anyLive || seq > h.live {
		h.live, h.anyLive = seq, true
	}
}

// readable reports whether a payload can be read, and if so whether it is of this publisher's rank.
func (h *history) readable(payload []byte) (ok, ours bool) {
	b, err := h.dec.Decode(payload)
	if err != nil {
		h.note(func(s *Status) { s.DecodeErrors++ })
		return false, false
	}
	return true, h.ours(b)
}

// ours is false for a batch of another rank.
func (h *history) ours(b *Batch) bool {
	if b.Rank == NoRank || h.pub.Rank == AnyRank || b.Rank == h.pub.Rank {
		return true
	}
	h.note(func(s *Status) { s.WrongRank++ })
	return false
}

// repeated looks at a message whose number is not new. It returns true if the message must be taken after all.
func (h *history) repeated(ctx context.Context, seq uint64, payload []byte) bool {
	forward := !h.anyLive || seq > h.live
	is := h.recent.look(seq, sum(payload))
	if forward && (is == same || is != different && h.replayed.has(seq)) {
		h.reached(seq)
		h.note(func(s *Status) { s.Overlaps++ })
		h.upToDate()
		return false
	}
	switch is {
	case same:
		h.note(func(s *Status) { s.Duplicates++ })
		return false
	case hole: // late, unless the number that made the hole was wrong
		h.note(func(s *Status) { s.Late++ })
		follows := h.lateAny && seq == h.late+1
		h.late, h.lateAny = seq, true
		if h.replay == nil && !follows {
			return false
		}
	}
	if ok, ours := h.readable(payload); !ok || !ours { // says nothing about the engine
		return false
	}
	h.anyLive = false
	h.restart(ctx)
	return seq >= h.next()
}

// maxDoubts is how many live messages in a row are disbelieved because replay does not know their numbers. Then it is
// replay that is not believed.
const maxDoubts = 3

// gap tries to get what is missing before seq. It returns false if the message itself came with it, or
// cannot be what it says.
func (h *history) gap(ctx context.Context, seq uint64) bool {
	if !h.any && h.replay == nil { // nothing was there yet: we came late
		h.lose(HistoryLost, seq)
		return true
	}
	missing := seq - h.next()
	h.note(func(s *Status) { s.Gaps++; s.Missing += missing })
	came := h.catchUp(ctx, h.next())
	switch {
	case seq < h.next():
		h.reached(seq)
		h.note(func(s *Status) { s.Overlaps++ })
		return false
	case seq == h.next():
		return true
	case came == all && h.doubts < maxDoubts:
		// The engine was asked after it had sent the message, and knows nothing of it.
		h.doubts++
		h.note(func(s *Status) { s.WrongNumbers++ })
		h.set(func() { h.synced = false }, Gap) // until one comes that is believed
		return false
	}
	cause := Gap
	if !h.any {
		cause = HistoryLost
	}
	h.unanswered = h.unanswered || came == silence
	h.lose(cause, seq-h.next())
	return true
}

// take applies a live message that comes next, as far as can be known.
func (h *history) take(ctx context.Context, seq uint64, payload []byte) {
	switch h.apply(seq, payload) {
	case applied:
		h.upToDate()
	case spoilt:
		came := h.catchUp(ctx, seq)
		if h.next() <= seq {
			h.unanswered = h.unanswered || came == silence
			h.giveUp(seq, payload)
		}
	}
}

// giveUp passes over a batch that cannot be read. It is known when it comes again.
func (h *history) giveUp(seq uint64, payload []byte) {
	h.any, h.last = true, seq
	h.recent.put(seq, sum(payload))
	h.lose(Undecodable, 1)
}

type outcome uint8

const (
	applied outcome = iota
	spoilt
	stranger
)

// apply gives a batch to the sink.
func (h *history) apply(seq uint64, payload []byte) outcome {
	b, err := h.dec.Decode(payload)
	if err != nil {
		h.note(func(s *Status) { s.DecodeErrors++ })
		return spoilt
	}
	if !h.ours(b) {
		return stranger
	}
	h.sink.Apply(b)
	h.any, h.last = true, seq
	h.recent.put(seq, sum(payload))
	cleared := slices.ContainsFunc(b.Events, func(e Event) bool { return e.Kind == Cleared })
	h.note(func(s *Status) {
		s.Any, s.LastSeq, s.LastTime = true, seq, b.Time
		s.Batches++
		s.Events += uint64(len(b.Events))
		s.UnknownEvents += uint64(b.Unknown)
		s.Malformed += uint64(b.Malformed)
	})
	if cleared { // from here on everything is known
		h.set(func() { h.lossy = 0 }, 0)
	}
	if b.Malformed > 0 {
		h.lose(Undecodable, 0)
	}
	return applied
}

// restart begins anew, with another process.
func (h *history) restart(ctx context.Context) {
	h.forget()
	h.catchUp(ctx, 0)
}

// forget is called when another process has taken the place of the one that is known.
func (h *history) forget() {
	h.note(func(s *Status) { s.Restarts++ })
	h.noStart, h.unanswered, h.repairs = false, false, 0
	h.clear(Restarted)
}

// clear forgets everything.
func (h *history) clear(cause Cause) {
	h.note(func(s *Status) { s.Clears++ })
	h.any, h.last, h.replayed, h.lateAny = false, 0, span{}, false
	h.recent.reset()
	h.set(func() {
		h.synced, h.lossy, h.beyond = false, 0, 0
		h.status.Any, h.status.LastSeq = false, 0
	}, cause)
	h.sink.Clear(cause)
}

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
