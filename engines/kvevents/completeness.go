package kvevents

// This file keeps the status of a history: whether everything that the engine published is known.

// upToDate is called when the live stream has reached the last batch.
func (h *history) upToDate() { h.set(func() { h.synced = true }, Starting) }

// lose enters that batches are missing for good.
func (h *history) lose(cause Cause, batches uint64) {
	h.set(func() {
		h.status.Holes += batches
		h.lossy = cause
	}, cause)
	h.note(func(s *Status) { s.Windows[len(s.Windows)-1].Missing += batches }) // set has opened it
}

// set changes what completeness depends on, and reports it to the sink and in the windows.
func (h *history) set(change func(), cause Cause) {
	h.mu.Lock()
	change()
	h.judge(cause)
	is := h.status.Complete
	h.mu.Unlock()
	if h.reported != is {
		h.reported = is
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
	h.note(func(s *Status) { s.Err = err })
}

// overflow is called for each message that was dropped, in another goroutine than the others. The sink is busy and
// gets the report later.
func (h *history) overflow(seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status.Overflows++
	h.behind, h.beyond = true, seq
	h.judge(Overflow)
}

// clash is called for each message of an engine whose topic another one has taken since.
func (h *history) clash() {
	h.note(func(s *Status) { s.Clashes++; h.clashed = h.now() })
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
