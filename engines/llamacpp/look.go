package llamacpp

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/ragpilot/ragpilot/engines"
)

// look finds out what must be known before a request is sent: which process the server is, the prompt's tokens, and what
// the doubtful slots hold.
func (e *Engine) look(ctx context.Context, req engines.Request, extra map[string]json.RawMessage) ([]token, error) {
	ctx, cancel := context.WithTimeout(ctx, e.config.Patience)
	defer cancel()
	select {
	case e.looking <- struct{}{}:
	case <-ctx.Done():
		return nil, ended(ctx)
	}
	defer func() { <-e.looking }()
	var prompt []token
	for range 2 {
		before := e.turn()
		var err error
		if prompt, err = e.tokens(ctx, req, extra); err != nil {
			return nil, err
		}
		// The tokens came over a connection to the process that serves now. If that was made before the last
		// identification, nothing was restarted since.
		if err := e.identify(ctx); err != nil {
			return nil, err
		}
		if before == 0 || before == e.turn() {
			break
		}
		// The tokens may be those of another model.
	}
	e.mu.Lock()
	doubt := e.book.doubtful()
	e.mu.Unlock()
	if doubt {
		e.inspect(ctx) // if that is not possible the doubts stay
	}
	return prompt, nil
}

// still reports whether what was looked up in a turn is still right. A new connection alone is no reason to look again, but
// it is one to ask for the process.
func (e *Engine) still(ctx context.Context, turn uint64) bool {
	e.mu.Lock()
	same, suspect := e.book.turn == turn, e.suspicions != e.cleared
	e.mu.Unlock()
	if !same || suspect {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, e.config.Patience)
	defer cancel()
	return e.identify(ctx) == nil && e.turn() == turn
}

// identify asks which process the server is, if there may be a new one, and begins a new book if there is.
func (e *Engine) identify(ctx context.Context) error {
	select {
	case e.identifying <- struct{}{}:
	case <-ctx.Done():
		return ended(ctx)
	}
	defer func() { <-e.identifying }()
	dials := e.client.dials.Load()
	e.mu.Lock()
	fresh := e.book.slots != nil && e.suspicions == e.cleared && !e.client.blind && dials == e.seen
	suspicions := e.suspicions
	e.mu.Unlock()
	if fresh {
		return nil
	}
	info, err := e.client.info(ctx)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.unlock()
	suspect := suspicions != e.cleared
	e.seen, e.cleared = dials, suspicions
	switch {
	case e.book.slots == nil:
		e.book.restart(info.identity(), info.Slots)
	case e.book.process != info.identity() || info.Sleeping:
		e.book.restart(info.identity(), info.Slots)
		e.stats.Restarts++
	case suspect || info.Process == "":
		e.book.distrust(nil)
	}
	e.dispatch()
	return nil
}

// inspect takes over the true lengths of free slots.
func (e *Engine) inspect(ctx context.Context) {
	e.mu.Lock()
	e.stats.Looks++
	turn := e.book.turn
	before := slices.Clone(e.book.slots)
	e.mu.Unlock()
	slots, err := e.client.slots(ctx)
	if err != nil {
		return
	}
	e.mu.Lock()
	defer e.unlock()
	if e.book.turn != turn {
		return
	}
	if e.book.emptied(before, slots) {
		e.book.restart(e.book.process, len(e.book.slots))
		e.stats.Restarts++
		before = slices.Clone(e.book.slots)
	}
	for _, s := range slots {
		if s.Busy || s.ID < 0 || s.ID >= len(before) {
			continue
		}
		// Unless something has run on it since the question, the length is that of what the book has.
		if was, is := before[s.ID], e.book.slots[s.ID]; was.lease == nil && is.lease == nil && was.used == is.used {
			e.book.settle(s.ID, s.Tokens)
		}
	}
	e.dispatch()
}

// turn returns the number of server processes seen so far.
func (e *Engine) turn() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.book.turn
}
