package cachewatch

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Where no engine is followed a request costs nothing.
func TestFollowsNothing(t *testing.T) {
	f, err := New(Options{Engines: func() []settings.Engine { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	if f.Follows("m") || f.Follow(proxy.Prompt{Model: "m"}) != nil || f.Snapshot() != nil {
		t.Error("something is followed")
	}
	if n := testing.AllocsPerRun(100, func() { f.Follows("m") }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// An engine that is not there is tried until the end, and Run leaves nothing behind.
func TestRunEnds(t *testing.T) {
	var engines atomic.Pointer[[]settings.Engine]
	engines.Store(&[]settings.Engine{
		{Name: "a", Kind: "vllm", Events: "ipc:///does/not/exist", Models: []string{"m"}},
		{Name: "b", Kind: "sglang", Events: settings.AutoEvents, Models: []string{"n"}},
		{Name: "c", Kind: "vllm", Events: "ipc:///does/not/exist/either", Listen: true, Models: []string{"m"}},
		{Name: "d", Kind: "vllm", URL: "::", Events: settings.AutoEvents},
	})
	reg := prometheus.NewRegistry()
	f, err := New(Options{
		Engines: func() []settings.Engine { return *engines.Load() }, BaseURL: "http://127.0.0.1:1", Registry: reg, Every: time.Millisecond,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{Registry: reg}); err == nil {
		t.Error("the same metrics are entered twice")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.Run(ctx)
	}()
	wait := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("not so: ", what)
			}
		}
	}
	wait("an error is known", func() bool {
		s := f.Snapshot()
		return s != nil && len(s.Sources) == 3 && s.Sources[0].Error != ""
	})
	if !f.Follows("m") || !f.Follows("n") || f.Follows("other") {
		t.Error("models")
	}
	if f.Follow(proxy.Prompt{Model: "m", Body: []byte("{}")}) != nil || f.Snapshot().Prompts.Unknown != 1 {
		t.Error("a prompt is followed whose tokens cannot be had")
	}
	if families, err := reg.Gather(); err != nil || len(families) < 5 {
		t.Errorf("%d families, %v", len(families), err)
	}
	engines.Store(&[]settings.Engine{})
	wait("nothing is followed", func() bool { return f.Snapshot() == nil })
	cancel()
	<-ended
	f.Run(ctx) // it has run
}

// A change of the list leaves engines alone that it does not concern; what those held that go is told as cleared.
func TestChangeOfEngines(t *testing.T) {
	a := settings.Engine{Name: "a", Kind: "vllm", Events: "ipc:///does/not/exist", Models: []string{"m"}}
	b := settings.Engine{Name: "b", Kind: "vllm", Events: "ipc:///does/not/exist/either", Models: []string{"n"}}
	more := settings.Engine{Name: "c", Kind: "vllm", Events: "ipc:///nor/this", Models: []string{"n"}}
	var engines atomic.Pointer[[]settings.Engine]
	engines.Store(&[]settings.Engine{a})
	var mu sync.Mutex
	cleared := ""
	f, err := New(Options{
		Engines: func() []settings.Engine { return *engines.Load() }, BaseURL: "http://127.0.0.1:1", Every: time.Millisecond,
		Log:     slog.New(slog.DiscardHandler),
		Cleared: func(models []string) { mu.Lock(); defer mu.Unlock(); cleared += strings.Join(models, ",") + ";" },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.Run(ctx)
	}()
	var before *generation
	for _, c := range []struct {
		engines []settings.Engine
		cleared string // so far
		kept    string // models
	}{
		{[]settings.Engine{a}, "", ""},
		{[]settings.Engine{b, a}, "", "m"},
		{[]settings.Engine{a, b}, "", "m n"},
		{[]settings.Engine{a, b, more}, "n;", "m"},
		{[]settings.Engine{more, b}, "n;m;n;", ""}, // another order of those that serve one model is another fleet
		{nil, "n;m;n;n;", ""},
	} {
		engines.Store(&c.engines)
		var now *generation
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			now = f.now.Load()
			mu.Lock()
			done := cleared == c.cleared
			mu.Unlock()
			if done && (now == nil) == (c.engines == nil) && (now == nil || slices.EqualFunc(now.engines, c.engines, func(a, b settings.Engine) bool { return a.Name == b.Name })) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("engines %v: cleared %q, want %q; follows %+v", c.engines, cleared, c.cleared, now)
			}
		}
		var kept []string
		if before != nil && now != nil {
			for _, fl := range now.fleets {
				if slices.Contains(before.fleets, fl) {
					kept = append(kept, fl.models...)
				}
			}
		}
		if got := strings.Join(kept, " "); got != c.kept {
			t.Errorf("engines %v: kept those of %q, want %q", c.engines, got, c.kept)
		}
		before = now
	}
	engines.Store(&[]settings.Engine{a})
	cancel()
	<-ended
	if f.Snapshot() != nil || cleared != "n;m;n;n;" {
		t.Errorf("after the end: %+v, cleared %q", f.Snapshot(), cleared)
	}
}

// A part is told what is left of it, by its place in the body.
func TestShrunkParts(t *testing.T) {
	var mu sync.Mutex
	got := map[string]int{}
	f, err := New(Options{
		Engines: func() []settings.Engine { return nil },
		Shrunk:  func(_ contextpilot.Scope, id string, tokens int) { mu.Lock(); defer mu.Unlock(); got[id] = tokens },
	})
	if err != nil {
		t.Fatal(err)
	}
	p := placed{size: 1000, tokens: 500, parts: []proxy.Part{{ID: "a", Start: 100, Length: 400, Tokens: 80}, {ID: "b", Start: 600, Length: 200, Tokens: 40}, {ID: "none", Start: 900}}}
	for _, c := range []struct {
		resident int
		want     string
	}{
		{500, ""},
		{400, ""}, // all of both
		{350, "b20"},
		{150, "a40 b0"},
		{0, "a0 b0"},
	} {
		clear(got)
		f.shrunk(p, c.resident)
		var list []string
		for _, id := range []string{"a", "b"} {
			if n, ok := got[id]; ok {
				list = append(list, id+string(rune('0'+n/10))+"0")
			}
		}
		if text := strings.ReplaceAll(strings.Join(list, " "), "00", "0"); text != c.want {
			t.Errorf("%d tokens resident: %q, want %q", c.resident, text, c.want)
		}
	}
	f.shrunk(placed{parts: p.parts}, 0) // of a prompt without tokens nothing is known
}
