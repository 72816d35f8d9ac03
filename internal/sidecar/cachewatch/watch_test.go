package cachewatch

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
)

// alone is an engine that was not started, and its log.
func alone(t *testing.T, cfg Engine) (*engine, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	f := newFollower(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	return newFleet(f, []Engine{cfg}).engines[0], &log
}

// A publisher that has gone and comes back, as another process, is looked at and logged anew.
func TestPublisherComesBack(t *testing.T) {
	e, log := alone(t, Engine{Name: "all", Kind: "vllm"})
	a := kvevents.Publisher{Source: "all", Topic: "kv@a"}
	looks := func() bool {
		select {
		case <-e.again:
			return true
		default:
			return false
		}
	}
	known := e.logAll(nil, []kvevents.Status{{Publisher: a, Connected: true, Counters: kvevents.Counters{Connects: 3}}}, nil)
	if !looks() {
		t.Error("the first connection: not looked at")
	}
	known = e.logAll(known, []kvevents.Status{{Publisher: a, Connected: true, Counters: kvevents.Counters{Connects: 3}}}, nil)
	if looks() {
		t.Error("nothing has changed, and it is looked at")
	}
	known = e.logAll(known, nil, nil)
	if len(known) > 0 {
		t.Errorf("remembered: %v", known)
	}
	e.logAll(known, []kvevents.Status{{Publisher: a, Connected: true, Counters: kvevents.Counters{Connects: 1}}}, nil)
	if n := strings.Count(log.String(), "cache events: connected"); !looks() || n != 2 {
		t.Errorf("it is not looked at anew, or %d connections are logged:\n%s", n, log)
	}
}

// Where no block of any prompt is stored the log says so, also if other caches were never heard of.
func TestMismatch(t *testing.T) {
	stored := func(hash uint64, first int) *kvevents.Batch {
		return &kvevents.Batch{
			Events: []kvevents.Event{
				{Kind: kvevents.Stored, Hashes: []kvevents.Hash{kvevents.Uint(hash)}, Tokens: []int{first, 1, 2, 3}, BlockSize: 4},
			},
		}
	}
	for name, c := range map[string]struct {
		other func(*residency.Index) // what happens to the second cache
		want  bool
	}{
		"never heard of": {func(*residency.Index) {}, true},
		"complete":       {func(x *residency.Index) { x.Complete(true) }, true}, // and so it must have stored them
		"restarted":      {func(x *residency.Index) { x.Apply(stored(1, 0)); x.Clear(kvevents.Restarted) }, false},
		"gone for good": {func(x *residency.Index) {
			x.Apply(stored(1, 0))
			x.Complete(true)
			x.Complete(false)
			x.Clear(kvevents.Disconnected)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			e, log := alone(t, Engine{Name: "a", Kind: "vllm", BlockSize: 4})
			group := e.fleet.group
			a, b := group.Index("a"), group.Index("b")
			a.Apply(stored(1, 1<<20))
			a.Complete(true)
			c.other(b)
			status := []kvevents.Status{{Publisher: kvevents.Publisher{Source: "a"}}}
			known := e.logAll(nil, status, nil)
			for i := range residency.DefaultUnseen {
				if strings.Contains(log.String(), "not the engine's") {
					t.Fatalf("said after %d prompts", i)
				}
				id := fmt.Sprint(i)
				group.Register(id, []int{i + 1, 1, 2, 3}, residency.Key{})
				group.Served(id)
				known = e.logAll(known, status, nil)
			}
			e.logAll(known, status, nil)
			want := 0
			if c.want {
				want = 1
			}
			if n := strings.Count(log.String(), "the tokens that are known are not the engine's"); n != want {
				t.Errorf("said %d times, want %d:\n%s", n, want, log)
			}
		})
	}
}

// The server says when a publisher was started as long as there is no other one: otherwise it is not known whose the server is.
func TestStartOfSeveral(t *testing.T) {
	e, _ := alone(t, Engine{Name: "all", Kind: "vllm"})
	e.server.started = func(context.Context) (float64, error) { return 7, nil }
	e.free, e.names = map[string]string{}, map[kvevents.Publisher]string{}
	a, b := kvevents.Publisher{Source: "all", Topic: "kv@a"}, kvevents.Publisher{Source: "all", Topic: "kv@b"}
	other := kvevents.Publisher{Source: "other"}
	check := func(what string, known bool) {
		t.Helper()
		if at, err := e.started(t.Context(), a); (err == nil) != known || known && at != 7 {
			t.Errorf("%s: %v, %v", what, at, err)
		}
	}
	e.cache(a)
	e.cache(other)
	check("one", true)
	e.cache(b)
	check("two", false)
	e.forgotten(b)
	check("one is left", true)
}

// The caches of where an engine published before are forgotten, those that stay are kept.
func TestCachesOfOldSources(t *testing.T) {
	e, _ := alone(t, Engine{Name: "e", Kind: "vllm"})
	var list []published
	e.server.sources = func(context.Context) ([]published, error) { return slices.Clone(list), nil }
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // subscribe enters the caches, and returns
	var first *residency.Index
	for _, c := range []struct{ ranks, caches int }{{1, 1}, {3, 3}, {2, 2}, {1, 1}} {
		list = nil
		for i := range c.ranks {
			list = append(list, published{Source: kvevents.Source{Endpoint: fmt.Sprintf("tcp://127.0.0.1:%d", i+1), Rank: i}})
		}
		if _, err := e.subscribe(ctx); err != nil {
			t.Fatal(err)
		}
		if n := len(e.fleet.group.Stats()); n != c.caches {
			t.Errorf("%d ranks: %d caches", c.ranks, n)
		}
		switch c.ranks {
		case 3:
			first = e.fleet.group.Index("e/dp0")
		case 2:
			if e.fleet.group.Index("e/dp0") != first {
				t.Error("a cache that is still there was made anew")
			}
		}
	}
}
