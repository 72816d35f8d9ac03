package kvevents

import (
	"context"
	"sync"
	"time"
)

// history is what one publisher has said so far. It makes one ordered stream without holes of live messages and of
// replays, or knows that there are holes. One goroutine uses it; others look at status.
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

	told bool // what the sink was told last of completeness

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

func (h *history) count(f func(*Counters)) {
	h.mu.Lock()
	f(&h.status.Counters)
	h.mu.Unlock()
}

// connected is called for each connection, before its first message.
func (h *history) connected(ctx context.Context) {
	h.count(func(c *Counters) { c.Connects++ })
	h.mu.Lock()
	h.status.Connected = true
	h.mu.Unlock()
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
	h.mu.Lock()
	h.status.Connected = false
	h.mu.Unlock()
	h.set(func() { h.synced = false }, Disconnected)
}

// message takes a live one.
func (h *history) message(ctx context.Context, seq uint64, payload []byte) {
	h.mu.Lock()
	h.status.Messages++
	h.silent = false
	h.mu.Unlock()
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
		h.count(func(c *Counters) { c.DecodeErrors++ })
		return false, false
	}
	return true, h.ours(b)
}

// ours is false for a batch of another rank.
func (h *history) ours(b *Batch) bool {
	if b.Rank == NoRank || h.pub.Rank == AnyRank || b.Rank == h.pub.Rank {
		return true
	}
	h.count(func(c *Counters) { c.WrongRank++ })
	return false
}

// repeated looks at a message whose number is not new. It returns true if the message is to be taken after all.
func (h *history) repeated(ctx context.Context, seq uint64, payload []byte) bool {
	forward := !h.anyLive || seq > h.live
	is := h.recent.look(seq, sum(payload))
	if forward && (is == same || is != different && h.replayed.has(seq)) {
		h.reached(seq)
		h.count(func(c *Counters) { c.Overlaps++ })
		h.upToDate()
		return false
	}
	switch is {
	case same:
		h.count(func(c *Counters) { c.Duplicates++ })
		return false
	case hole: // late, unless the number that made the hole was wrong
		h.count(func(c *Counters) { c.Late++ })
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
	h.count(func(c *Counters) { c.Gaps++; c.Missing += missing })
	came := h.catchUp(ctx, h.next())
	switch {
	case seq < h.next():
		h.reached(seq)
		h.count(func(c *Counters) { c.Overlaps++ })
		return false
	case seq == h.next():
		return true
	case came == all && h.doubts < maxDoubts:
		// The engine was asked after it had sent the message, and knows nothing of it.
		h.doubts++
		h.count(func(c *Counters) { c.WrongNumbers++ })
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

// upToDate is called when the live stream has reached the last batch.
func (h *history) upToDate() { h.set(func() { h.synced = true }, Starting) }

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
		h.count(func(c *Counters) { c.DecodeErrors++ })
		return spoilt
	}
	if !h.ours(b) {
		return stranger
	}
	h.sink.Apply(b)
	h.any, h.last = true, seq
	h.recent.put(seq, sum(payload))
	cleared := false
	for i := range b.Events {
		cleared = cleared || b.Events[i].Kind == Cleared
	}
	h.mu.Lock()
	h.status.Any, h.status.LastSeq, h.status.LastTime = true, seq, b.Time
	c := &h.status.Counters
	c.Batches++
	c.Events += uint64(len(b.Events))
	c.UnknownEvents += uint64(b.Unknown)
	c.Malformed += uint64(b.Malformed)
	h.mu.Unlock()
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
	h.count(func(c *Counters) { c.Restarts++ })
	h.noStart, h.unanswered, h.repairs = false, false, 0
	h.clear(Restarted)
	h.catchUp(ctx, 0)
}

// clear forgets everything.
func (h *history) clear(cause Cause) {
	h.count(func(c *Counters) { c.Clears++ })
	h.any, h.last, h.replayed, h.lateAny = false, 0, span{}, false
	h.recent.reset()
	h.set(func() {
		h.synced, h.lossy, h.beyond = false, 0, 0
		h.status.Any, h.status.LastSeq = false, 0
	}, cause)
	h.sink.Clear(cause)
}

// lose says that batches are missing for good.
func (h *history) lose(cause Cause, batches uint64) {
	h.mu.Lock()
	h.status.Holes += batches
	if n := len(h.status.Windows); n > 0 && h.status.Windows[n-1].Until.IsZero() {
		h.status.Windows[n-1].Missing += batches
		batches = 0
	}
	h.mu.Unlock()
	h.set(func() { h.lossy = cause }, cause)
	if batches > 0 {
		h.mu.Lock()
		h.status.Windows[len(h.status.Windows)-1].Missing += batches
		h.mu.Unlock()
	}
}

// set changes what completeness depends on, and tells the sink and the windows of it.
func (h *history) set(change func(), cause Cause) {
	h.mu.Lock()
	change()
	h.judge(cause)
	is := h.status.Complete
	h.mu.Unlock()
	if h.told != is {
		h.told = is
		h.sink.Complete(is)
	}
}

// judge brings the status up to date. h.mu is held.
func (h *history) judge(cause Cause) {
	was, is := h.status.Complete, h.synced && !h.behind && h.lossy == 0
	h.status.Complete = is
	switch {
	case was == is:
	case is:
		h.status.Windows[len(h.status.Windows)-1].Until = h.now()
	default:
		if len(h.status.Windows) == maxWindows {
			h.status.Windows = append(h.status.Windows[:0], h.status.Windows[1:]...)
		}
		h.status.Windows = append(h.status.Windows, Window{From: h.now(), Cause: cause})
	}
}

func (h *history) failed(err error) {
	h.mu.Lock()
	h.status.Err = err
	h.mu.Unlock()
}

// probe asks whether anything was missed, after the stream was silent for a while.
func (h *history) probe(ctx context.Context) {
	if h.replay == nil {
		return
	}
	before := h.next()
	h.catchUp(ctx, before)
	found := h.next() - before
	if found == 0 {
		return
	}
	h.mu.Lock()
	h.status.Found += found
	h.silent = h.status.Messages == 0
	h.mu.Unlock()
}

// overflow is called for each message that was dropped, in another goroutine than the others. The sink, which is busy,
// is told later.
func (h *history) overflow(seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status.Overflows++
	h.behind, h.beyond = true, seq
	h.judge(Overflow)
}

// dropped is called when messages were dropped and no other may come that shows it.
func (h *history) dropped(ctx context.Context) {
	h.mu.Lock()
	h.behind = false // unless another is dropped from here on
	seq := h.beyond
	h.mu.Unlock()
	if h.replay == nil {
		h.lose(Gap, 0)
		return
	}
	h.catchUp(ctx, h.next())
	h.set(func() { h.synced = h.synced && h.next() > seq }, Overflow)
}

// clash is called for each message of an engine whose topic another one has taken since.
func (h *history) clash() {
	h.mu.Lock()
	h.status.Clashes++
	h.clashed = h.now()
	h.mu.Unlock()
}

// Bounds of asking for everything once more.
const (
	maxResync  = 10 * time.Minute // between two, the wait doubles up to it
	maxRepairs = 3                // of one process, because of the sink
)

// check asks for everything once more if that may help: replay did not answer when it was needed, or the sink says
// that batches did not fit each other.
func (h *history) check(ctx context.Context) {
	if h.replay == nil || h.noStart || h.now().Before(h.nextSync) || !h.unanswered && !h.inconsistent() {
		return
	}
	h.syncWait = min(max(2*h.syncWait, h.firstSync), maxResync)
	h.nextSync = h.now().Add(h.syncWait)
	h.resync(ctx)
}

func (h *history) inconsistent() bool {
	c, ok := h.sink.(Checker)
	if !ok || h.repairs >= maxRepairs {
		return false
	}
	h.mu.Lock()
	complete := h.status.Complete
	h.mu.Unlock()
	if !complete || !c.Inconsistent() {
		return false
	}
	h.repairs++
	return true
}

// resync begins anew with the same process, if its replay buffer still reaches back to its start.
func (h *history) resync(ctx context.Context) {
	if h.replay == nil {
		return
	}
	answered, whole := false, false
	_, _ = h.ask(ctx, 0, func(seq uint64, _ []byte) bool {
		answered, whole = true, seq == 0
		return false
	})
	if answered {
		h.unanswered, h.noStart = false, !whole
	}
	if !whole {
		return
	}
	h.count(func(c *Counters) { c.Resyncs++ })
	h.clear(Resyncing)
	h.catchUp(ctx, 0)
	h.mu.Lock()
	complete := h.status.Complete
	h.mu.Unlock()
	h.told = complete
	h.sink.Complete(complete) // which it may have been told: now the replay is over
}

func (h *history) snapshot() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.status
	s.Windows = append([]Window(nil), s.Windows...)
	s.Hint = h.hint()
	return s
}

// hint says what is wrong with the engine's configuration, as far as that can still be seen. h.mu is held.
func (h *history) hint() string {
	switch {
	case !h.clashed.IsZero() && h.now().Sub(h.clashed) < away:
		return "two engines publish under one topic: give each a topic of its own"
	case h.silent:
		return "replay has batches and the live stream has none: an engine whose endpoint names a host connects to it instead of listening there"
	case h.foreign:
		return "the replay endpoint is another engine's, or may be: what was missed cannot be asked for"
	}
	return ""
}
