package kvevents

import (
	"context"
	"time"
)

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
	h.note(func(s *Status) { s.Found += found; h.silent = s.Messages == 0 })
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
	h.note(func(s *Status) { s.Resyncs++ })
	h.clear(Resyncing)
	h.catchUp(ctx, 0)
	h.mu.Lock()
	complete := h.status.Complete
	h.mu.Unlock()
	h.reported = complete
	h.sink.Complete(complete) // even if that was reported before: now the replay is over
}
