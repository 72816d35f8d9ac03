package engines

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// warmup computes the beginning of requests by one request, or several of which each begins with the one before it. Its context
// does not end with one of those that want it, but when none of them does any more.
type warmup struct {
	next  func() (req Request, ok bool) // what is sent next; not ok: nothing more
	after *warmup                       // nil, or what must end before anything is sent: the beginning of it
	ctx   context.Context               // lives as long as the warm-up
	stop  context.CancelFunc
	done  chan struct{} // closed when it has ended

	// Of a head; guarded by the Warmer's mu, like all below. Zero for a guess.
	whole, start headKey // all of it, and its fixed messages

	wanted    int
	cancelled bool
	watches   []func() bool // end what was registered for those who want it
}

// want notes one more who wants a warm-up, until ctx ends or the returned function is called. w.mu is held.
func (w *Warmer) want(ctx context.Context, u *warmup) (leave func()) {
	u.wanted++
	leave = sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if u.wanted--; u.wanted == 0 {
			w.cancel(u)
		}
	})
	u.watches = append(u.watches, context.AfterFunc(ctx, leave))
	return leave
}

// cancel gives a warm-up up, if it is under way. w.mu is held.
func (w *Warmer) cancel(u *warmup) {
	if _, under := w.under[u]; under && !u.cancelled {
		u.cancelled = true
		w.count.cancelled.Add(1)
		u.stop()
	}
}

// start runs a warm-up, unless there are too many. w.mu is held. ended is called when it has ended, before done is closed.
func (w *Warmer) start(ctx context.Context, u *warmup, ended func(error)) bool {
	if w.closed || len(w.under) >= w.opt.MaxWarmups {
		w.count.skipped.Add(1)
		return false
	}
	u.ctx, u.stop = context.WithCancel(context.WithoutCancel(ctx))
	u.done = make(chan struct{})
	w.under[u] = struct{}{}
	w.wg.Go(func() {
		err := w.run(u)
		w.note(u, err)
		ended(err)
		close(u.done)
	})
	return true
}

// run sends the requests when its turn has come, and waits for the engine.
func (w *Warmer) run(u *warmup) error {
	defer u.stop()
	if u.after != nil {
		select {
		case <-u.after.done:
		case <-u.ctx.Done():
		}
		u.after = nil // those before it need not be kept
	}
	for u.ctx.Err() == nil {
		req, ok := u.next()
		if !ok {
			return nil
		}
		if err := w.send(u.ctx, req); err != nil {
			return err
		}
	}
	return u.ctx.Err()
}

// errEnough breaks off an answer that is longer than was asked for.
var errEnough = errors.New("enough")

// send sends one request. A panic in the engine is an error: no request waits for a warm-up, so it must not end the program.
func (w *Warmer) send(ctx context.Context, req Request) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("engines: warm-up: panic: %v", r)
		}
	}()
	w.count.sent.Add(1)
	pieces := 0
	resp, err := w.opt.Engine.Generate(ctx, req, func(string) error {
		if pieces++; pieces > 1 {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	w.count.computed.Add(int64(max(resp.Usage.PromptTokens-resp.Usage.CachedTokens, 0)))
	return nil
}

// note lets go of a warm-up that has ended, and counts one that has failed.
func (w *Warmer) note(u *warmup, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && !u.cancelled {
		w.count.failed.Add(1)
	}
	delete(w.under, u)
	if w.heads[u.whole] == u {
		delete(w.heads, u.whole)
		if _, known := w.known.Get(u.start); err == nil && !known {
			w.known.Put(u.start, warmed)
		}
	}
	for _, unwatch := range u.watches {
		unwatch()
	}
	u.watches = nil
}

// warmHead computes what stands in front of a request's blocks, or joins who does.
func (w *Warmer) warmHead(
	ctx context.Context, req *contextpilot.Request, build func(*contextpilot.Plan) Request,
) (u *warmup, start headKey, leave func()) {
	h := w.head(req, build)
	start, whole := w.key(req.Scope, &h.req, h.fixed), w.key(req.Scope, &h.req, len(h.req.Messages))
	found := h.match(w.opt.Pilot, *req)
	w.mu.Lock()
	defer w.mu.Unlock()
	u, leave = nil, func() {}
	switch same := w.heads[whole]; {
	case ctx.Err() != nil:
	case same != nil && !same.cancelled:
		w.count.shared.Add(1)
		u = same
	case w.missing(start, found) < w.opt.MinTokens:
		w.count.skipped.Add(1)
	default:
		fresh := &warmup{next: once(asWarmup(asChat(h.req), w.id())), start: start, whole: whole}
		if w.start(ctx, fresh, func(error) {}) {
			w.heads[whole], u = fresh, fresh
		}
	}
	if u != nil {
		leave = w.want(ctx, u)
	}
	return u, start, leave
}

// once gives one request.
func once(req Request) func() (Request, bool) {
	given := false
	return func() (Request, bool) {
		ok := !given
		given = true
		return req, ok
	}
}

// missing returns the tokens of a head and the history behind it that are not in the engine's cache, as far as is known. A
// scope of which the pilot knows no request has lost everything, but for what was computed ahead since. w.mu is held.
func (w *Warmer) missing(start headKey, found headMatch) int {
	who, known := w.known.Get(start)
	switch {
	case !known:
		return found.prompt
	case found.live:
		w.known.Put(start, indexed)
		return found.prompt - found.resident
	case who == indexed:
		w.known.Delete(start)
		return found.prompt
	}
	return found.prompt - found.first
}
