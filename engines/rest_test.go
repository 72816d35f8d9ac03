package engines_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// failing is a fake engine that gives pieces and then fails, or answers if it has no error.
type failing struct {
	pieces []string
	err    error
	asked  int
}

func (f *failing) Name() string { return "a fake" }

func (f *failing) Generate(_ context.Context, req engines.Request, onText func(string) error) (engines.Response, error) {
	f.asked++
	for _, p := range f.pieces {
		if err := onText(p); err != nil {
			return engines.Response{ID: req.ID}, fmt.Errorf("%w: %w", engines.ErrInterrupted, err)
		}
	}
	return engines.Response{ID: req.ID, Text: strings.Join(f.pieces, "")}, f.err
}

func (f *failing) Subscribe(func(...contextpilot.Event)) (cancel func()) { return func() {} }

// TestFailingReplicaDrawsNoTraffic: a replica that answers nothing does not look idle for it.
func TestFailingReplicaDrawsNoTraffic(t *testing.T) {
	for name, err := range map[string]error{
		"500": engines.ErrRefused, "slow": fmt.Errorf("%w: %w", engines.ErrUnreachable, os.ErrDeadlineExceeded),
		"a client's own timeout":   fmt.Errorf("%w: %w", engines.ErrUnreachable, context.DeadlineExceeded),
		"broken off at once":       fmt.Errorf("%w: EOF", engines.ErrInterrupted),
		"silent after the headers": fmt.Errorf("%w: %w", engines.ErrInterrupted, os.ErrDeadlineExceeded),
	} {
		for _, at := range []string{"a", "b"} { // ties go to the first
			t.Run(name+" "+at, func(t *testing.T) {
				r, _ := newRouter(t, engines.RouterOptions{Window: 50})
				bad, good := &failing{err: err}, &failing{}
				add(t, r, at, bad)
				add(t, r, map[string]string{"a": "b", "b": "a"}[at], good)
				for i := range 200 {
					_, _ = r.Do(t.Context(), contextpilot.Request{Blocks: docs(fmt.Sprint("d", i))}, ask, nil)
				}
				if bad.asked > 10 || good.asked < 190 {
					t.Errorf("the failing one was asked %d times, the other %d", bad.asked, good.asked)
				}
			})
		}
	}
}

// TestFailedReplicaComesBack: one that has rested is asked again, and one answer is enough.
func TestFailedReplicaComesBack(t *testing.T) {
	r, _ := newRouter(t, engines.RouterOptions{Window: 50})
	now := time.Unix(0, 0)
	r.SetNow(func() time.Time { return now })
	ill, well := &failing{err: engines.ErrRefused}, &failing{}
	add(t, r, "ill", ill)
	add(t, r, "well", well)
	n := 0
	asked := func() int {
		before := ill.asked
		for range 30 {
			n++
			_, _ = r.Do(t.Context(), contextpilot.Request{Blocks: docs(fmt.Sprint("d", n))}, ask, nil)
		}
		return ill.asked - before
	}
	equal(t, "until it rests", 3, asked())
	now = now.Add(999 * time.Millisecond)
	equal(t, "while it rests", 0, asked())
	now = now.Add(2 * time.Millisecond)
	equal(t, "once more", 1, asked())
	now = now.Add(1900 * time.Millisecond)
	equal(t, "for longer", 0, asked())
	ill.err = nil
	now = now.Add(200 * time.Millisecond)
	if got := asked(); got < 10 {
		t.Errorf("of 30 requests the one that answers again has %d", got)
	}
}

// TestHungReplica: one that keeps requests for longer than its rests gets one at a time, and the others wait for that to end.
func TestHungReplica(t *testing.T) {
	for _, hangs := range []time.Duration{0, 10 * time.Second, 5 * time.Minute} {
		r, _ := newRouter(t, engines.RouterOptions{}, "hangs", "well")
		now := time.Unix(0, 0)
		r.SetNow(func() time.Time { return now })
		type flight struct {
			at time.Time
			rt *engines.Route
		}
		var under []flight
		asked := 0 // of the one that hangs, in the last quarter of an hour
		for n := range 30 * 60 * 5 {
			now = now.Add(200 * time.Millisecond)
			under = slices.DeleteFunc(under, func(f flight) bool {
				if f.at.After(now) {
					return false
				}
				if f.rt.Score.Replica == "hangs" {
					f.rt.Done(engines.Usage{}, fmt.Errorf("%w: %w", engines.ErrUnreachable, os.ErrDeadlineExceeded))
					return true
				}
				f.rt.First()
				f.rt.Done(engines.Usage{}, nil)
				return true
			})
			rt := route(t, r, contextpilot.Request{Blocks: docs(fmt.Sprint("d", n))})
			takes := 2 * time.Second
			if rt.Score.Replica == "hangs" {
				takes = hangs
				if n >= 15*60*5 {
					asked++
				}
			}
			under = append(under, flight{now.Add(takes), rt})
		}
		if asked == 0 || asked > 30 {
			t.Errorf("one that hangs for %v was asked %d times in 15 minutes, want 1 to 30", hangs, asked)
		}
	}
}

// TestTrialGivenUp: a request that should try a replica, and that its caller gives up, shows nothing: the next one tries it.
func TestTrialGivenUp(t *testing.T) {
	r, _ := newRouter(t, engines.RouterOptions{}, "ill", "well")
	now := time.Unix(0, 0)
	r.SetNow(func() time.Time { return now })
	n := 0
	next := func() *engines.Route {
		n++
		return route(t, r, contextpilot.Request{Blocks: docs(fmt.Sprint("d", n))})
	}
	for failed := 0; failed < 3; {
		rt := next()
		if rt.Score.Replica == "ill" {
			failed++
			rt.Done(engines.Usage{}, engines.ErrRefused)
		} else {
			rt.Done(engines.Usage{}, nil)
		}
	}
	now = now.Add(2 * time.Second)
	for _, end := range []error{context.Canceled, context.DeadlineExceeded, nil} {
		trial := next()
		for ; trial.Score.Replica != "ill"; trial = next() {
			trial.Done(engines.Usage{}, nil)
			if n > 1000 {
				t.Fatal("no request tries it")
			}
		}
		for range 100 {
			if rt := next(); rt.Score.Replica != "well" {
				t.Fatal("a second request while one tries the replica")
			}
		}
		trial.Done(engines.Usage{}, end)
	}
	for range 200 {
		if next().Score.Replica == "ill" {
			return
		}
	}
	t.Error("it has answered, and is given nothing")
}

// TestTrialBegins: the first piece of a long answer says that the replica is well, not only its end.
func TestTrialBegins(t *testing.T) {
	r, _ := newRouter(t, engines.RouterOptions{}, "only")
	now := time.Unix(0, 0)
	r.SetNow(func() time.Time { return now })
	for i := range 3 {
		route(t, r, contextpilot.Request{Blocks: docs(fmt.Sprint("f", i))}).Done(engines.Usage{}, engines.ErrRefused)
	}
	now = now.Add(2 * time.Second)
	route(t, r, contextpilot.Request{Blocks: docs("trial")}).First()
	if err := r.Add("other", nil); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if route(t, r, contextpilot.Request{Blocks: docs(fmt.Sprint("d", i))}).Score.Replica == "only" {
			return
		}
	}
	t.Error("of 100 requests the replica that answers has none")
}

// TestRequestsToBlame: requests that no replica would take, and what callers gave up, give no replica a rest.
func TestRequestsToBlame(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		rests bool
	}{
		{"a wrong request", fmt.Errorf("asking: %w", &openai.StatusError{Code: 422}), false},
		{"a model that is not served", &openai.StatusError{Code: 404}, false},
		{"a wrong key", &openai.StatusError{Code: 401}, false},
		{"too many", &openai.StatusError{Code: 429}, true},
		{"given up", context.Canceled, false},
		{"overloaded", fmt.Errorf("%w: %w", engines.ErrNotTaken, engines.ErrRefused), true},
	} {
		r, _ := newRouter(t, engines.RouterOptions{Window: 50})
		r.SetNow(func() time.Time { return time.Unix(0, 0) })
		first, other := &failing{err: c.err}, &failing{}
		add(t, r, "a", first)
		add(t, r, "b", other)
		for i := range 12 {
			_, _ = r.Do(t.Context(), contextpilot.Request{Blocks: docs(fmt.Sprint("d", i))}, ask, nil)
		}
		if c.rests != (first.asked == 3) {
			t.Errorf("%s: the replica was asked %d times", c.name, first.asked)
		}
	}
}

// TestFailedTogether: several that fail at once are a rest of one second, as one is.
func TestFailedTogether(t *testing.T) {
	r, _ := newRouter(t, engines.RouterOptions{Window: 50}, "a", "b")
	now := time.Unix(0, 0)
	r.SetNow(func() time.Time { return now })
	var under []*engines.Route
	for i := range 40 {
		under = append(under, route(t, r, contextpilot.Request{Blocks: docs(fmt.Sprint("d", i))}))
	}
	for _, rt := range under {
		if rt.Score.Replica == "a" {
			rt.Done(engines.Usage{}, engines.ErrRefused)
		} else {
			rt.Done(engines.Usage{}, nil)
		}
	}
	now = now.Add(1100 * time.Millisecond)
	for i := range 40 {
		if route(t, r, contextpilot.Request{Blocks: docs(fmt.Sprint("e", i))}).Score.Replica == "a" {
			return
		}
	}
	t.Error("of many that failed together each has lengthened the rest")
}

// TestKeptIsAPartOfThePrompt: what is left of a prompt is reported in the engine's tokens, and counts as the same part of the pilot's.
func TestKeptIsAPartOfThePrompt(t *testing.T) {
	cost := func(shrunk contextpilot.Event) float64 {
		r, _ := newRouter(t, engines.RouterOptions{Window: 50}, "a")
		rt := route(t, r, contextpilot.Request{ID: "1", Blocks: docs("x y z w")}) // 400 tokens
		rt.Done(engines.Usage{}, nil)
		shrunk.Kind, shrunk.Request = contextpilot.Shrunk, "1"
		if err := r.Observe("a", shrunk); err != nil {
			t.Fatal(err)
		}
		return r.Scores(contextpilot.Request{Blocks: docs("x y z w")})[0].Cost
	}
	if half, same := cost(contextpilot.Event{Tokens: 200}), cost(contextpilot.Event{Tokens: 400, Prompt: 800}); half != same {
		t.Errorf("half of the prompt costs %g, reported in other tokens %g", half, same)
	}
}
