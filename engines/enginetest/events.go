package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
)

// recorder is a sink that keeps the Served events.
type recorder struct {
	mu     sync.Mutex
	served []contextpilot.Event // guarded by mu
	more   chan struct{}        // has an element after something new came
}

func newRecorder() *recorder { return &recorder{more: make(chan struct{}, 1)} }

func (r *recorder) sink(events ...contextpilot.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range events {
		if e.Kind == contextpilot.Served {
			r.served = append(r.served, e)
		}
	}
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// of returns the Served events that name the request.
func (r *recorder) of(id string) []contextpilot.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []contextpilot.Event
	for _, e := range r.served {
		if e.Request == id {
			found = append(found, e)
		}
	}
	return found
}

// wait returns the request's Served events once there are any.
func (r *recorder) wait(ctx context.Context, t testing.TB, id string) []contextpilot.Event {
	t.Helper()
	for {
		if found := r.of(id); len(found) > 0 {
			return found
		}
		select {
		case <-r.more:
		case <-ctx.Done():
			t.Fatalf("no Served event for %q", id)
		}
	}
}

// checkServed: each complete answer is reported once, with the numbers of its usage.
func checkServed(ctx context.Context, t testing.TB, e engines.Engine) {
	r := newRecorder()
	defer e.Subscribe(r.sink)()
	for i := range 3 {
		id := fmt.Sprintf("served-%d", i)
		response, _ := answer(ctx, t, e, chat(id, "clouds"))
		found := r.wait(ctx, t, id)
		if len(found) != 1 {
			t.Fatalf("%d Served events for %q: %+v", len(found), id, found)
		}
		if found[0].Tokens != response.Usage.CachedTokens {
			t.Errorf("%s: event says %d cached tokens, usage %d", id, found[0].Tokens, response.Usage.CachedTokens)
		}
		if found[0].Output != response.Usage.OutputTokens {
			t.Errorf("%s: event says %d tokens of output, usage %d", id, found[0].Output, response.Usage.OutputTokens)
		}
	}
}

// checkServedOnlyComplete: a request that was stopped is not Served.
func checkServedOnlyComplete(ctx context.Context, t testing.TB, e engines.Engine) {
	r := newRecorder()
	defer e.Subscribe(r.sink)()
	enough := errors.New("enough")
	_, err := e.Generate(ctx, chat("stopped", "stones"), func(string) error { return enough })
	if !errors.Is(err, enough) {
		t.Fatalf("error %v does not wrap the callback's", err)
	}
	answer(ctx, t, e, chat("complete", "stones"))
	r.wait(ctx, t, "complete")
	if found := r.of("stopped"); len(found) > 0 {
		t.Errorf("the stopped request was Served: %+v", found)
	}
}

// checkSubscriptionEnds: a cancelled sink gets nothing more; cancelling again does nothing.
func checkSubscriptionEnds(ctx context.Context, t testing.TB, e engines.Engine) {
	ended, going := newRecorder(), newRecorder()
	cancel := e.Subscribe(ended.sink)
	defer e.Subscribe(going.sink)()
	answer(ctx, t, e, chat("before", "tides"))
	ended.wait(ctx, t, "before")
	cancel()
	cancel()
	answer(ctx, t, e, chat("after", "tides"))
	going.wait(ctx, t, "after")
	if found := ended.of("after"); len(found) > 0 {
		t.Errorf("events after the end of the subscription: %+v", found)
	}
}

// checkSeveralSubscribers: all sinks get all events, and calls of one sink do not overlap.
func checkSeveralSubscribers(ctx context.Context, t testing.TB, e engines.Engine) {
	const sinks, requests = 3, 8
	recorders := make([]*recorder, sinks)
	for i := range recorders {
		r := newRecorder()
		recorders[i] = r
		var inside sync.Mutex
		defer e.Subscribe(func(events ...contextpilot.Event) {
			if !inside.TryLock() {
				t.Error("two calls of one sink at the same time")
				return
			}
			defer inside.Unlock()
			r.sink(events...)
		})()
	}
	var wait sync.WaitGroup
	ids := make([]string, requests)
	for i := range requests {
		ids[i] = fmt.Sprintf("fan-%d", i)
		wait.Go(func() {
			if _, err := e.Generate(ctx, chat(ids[i], ids[i]), nil); err != nil {
				t.Errorf("%s: %v", ids[i], err)
			}
		})
	}
	wait.Wait()
	if t.Failed() {
		return
	}
	for i, r := range recorders {
		if missing := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return len(r.wait(ctx, t, id)) == 1 }); len(missing) > 0 {
			t.Errorf("sink %d did not get exactly one Served event for %v", i, missing)
		}
	}
}
