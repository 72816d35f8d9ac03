package publish

import "sync"

// history is the batches that are kept. Whoever sends them has a place in it of his own.
type history struct {
	most, mostBytes int // bounds

	mu       sync.Mutex
	changed  sync.Cond // a batch more, another subscription, or the end
	payloads [][]byte  // of the numbers from next-len(payloads) on
	next     uint64
	bytes    int
	events   uint64
	closed   bool
}

func newHistory(most, mostBytes int) *history {
	h := &history{most: most, mostBytes: mostBytes}
	h.changed.L = &h.mu
	return h
}

// add keeps one batch more, and of the old ones no more than the bounds allow, but always that one.
func (h *history) add(payload []byte, events int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.payloads = append(h.payloads, payload)
	h.next++
	h.bytes += len(payload)
	h.events += uint64(events)
	for len(h.payloads) > 1 && (len(h.payloads) > h.most || h.bytes > h.mostBytes) {
		h.bytes -= len(h.payloads[0])
		h.payloads[0] = nil
		h.payloads = h.payloads[1:]
	}
	h.changed.Broadcast()
}

func (h *history) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.changed.Broadcast()
}

// end is the number that comes next.
func (h *history) end() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next
}

// piece bounds how many batches are taken at a time.
const piece = 64

// from returns batches from a number on, if they are still there, else from the first that is, and that one's number.
func (h *history) from(number uint64) (first uint64, payloads [][]byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.take(number)
}

func (h *history) take(number uint64) (first uint64, payloads [][]byte) {
	kept := uint64(len(h.payloads))
	first = min(max(number, h.next-kept), h.next)
	rest := h.payloads[kept-(h.next-first):]
	return first, append([][]byte(nil), rest[:min(len(rest), piece)]...)
}

// reader is a subscriber's place. Its fields are guarded by the history's lock.
type reader struct {
	history       *history
	subscriptions int // that fit the topic
	next          uint64
	gone          bool
}

// subscribe enters one subscription more that fits, or with -1 takes one away. What was published before is passed over.
func (r *reader) subscribe(change int) {
	h := r.history
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.subscriptions == 0 {
		r.next = h.next
	}
	r.subscriptions = max(0, r.subscriptions+change)
	h.changed.Broadcast()
}

// leave ends wait.
func (r *reader) leave() {
	h := r.history
	h.mu.Lock()
	defer h.mu.Unlock()
	r.gone = true
	h.changed.Broadcast()
}

// wait waits for batches that the reader has not had. dropped is how many of them are no longer there; ok is false at the end.
func (r *reader) wait() (first uint64, payloads [][]byte, dropped uint64, ok bool) {
	h := r.history
	h.mu.Lock()
	defer h.mu.Unlock()
	for !h.closed && !r.gone && (r.subscriptions == 0 || r.next == h.next) {
		h.changed.Wait()
	}
	if h.closed || r.gone {
		return 0, nil, 0, false
	}
	first, payloads = h.take(r.next)
	dropped = first - r.next
	r.next = first + uint64(len(payloads))
	return first, payloads, dropped, true
}
