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
	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// newFollower makes a follower, whose options need not be complete.
func newFollower(t *testing.T, o Options) *Follower {
	t.Helper()
	if o.Engines == nil {
		o.Engines = func() []Engine { return nil }
	}
	if o.Lost == nil {
		o.Lost = func(contextpilot.Scope, string) {}
	}
	if o.Shrunk == nil {
		o.Shrunk = func(contextpilot.Scope, string, int) {}
	}
	if o.Cleared == nil {
		o.Cleared = func([]string) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.BaseURL = "http://127.0.0.1:1"
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// sourceAt is where a publisher would be.
func sourceAt(name, endpoint string) []kvevents.Source {
	return []kvevents.Source{{Name: name, Endpoint: endpoint, Rank: kvevents.AnyRank}}
}

// start runs a follower until the end of the test, or until stop is called.
func start(t *testing.T, f *Follower) (ctx context.Context, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.Run(ctx)
	}()
	return ctx, func() {
		cancel()
		<-ended
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Where no engine is followed a request costs nothing.
func TestFollowsNothing(t *testing.T) {
	f := newFollower(t, Options{})
	if f.Follows("m") || f.Follow(proxy.Prompt{Model: "m"}) != nil || f.Snapshot() != nil {
		t.Error("something is followed")
	}
	if n := testing.AllocsPerRun(100, func() { f.Follows("m") }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// An engine that is not there is tried until the end, and Run leaves nothing behind.
func TestRunEnds(t *testing.T) {
	var engines atomic.Pointer[[]Engine]
	engines.Store(&[]Engine{
		{Name: "a", Kind: "vllm", Sources: sourceAt("a", "ipc:///does/not/exist"), Models: []string{"m"}},
		{Name: "b", Kind: "sglang", Models: []string{"n"}},
		{Name: "c", Kind: "vllm", Sources: []kvevents.Source{
			{Name: "c", Endpoint: "ipc:///does/not/exist/either", Listen: true, Rank: kvevents.AnyRank},
		}, Models: []string{"m"}},
		{Name: "d", Kind: "vllm", URL: "::"},
	})
	reg := prometheus.NewRegistry()
	f := newFollower(t, Options{Engines: func() []Engine { return *engines.Load() }, Registry: reg, Every: time.Millisecond})
	if _, err := New(Options{Registry: reg}); err == nil {
		t.Error("the same metrics are entered twice")
	}
	ctx, stop := start(t, f)
	wait := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
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
	engines.Store(&[]Engine{})
	wait("nothing is followed", func() bool { return f.Snapshot() == nil })
	stop()
	f.Run(ctx) // it has run
}

// A change of the list leaves engines alone that it does not concern; what those held that are gone is reported as cleared.
func TestChangeOfEngines(t *testing.T) {
	a := Engine{Name: "a", Kind: "vllm", Sources: sourceAt("a", "ipc:///does/not/exist"), Models: []string{"m"}}
	b := Engine{Name: "b", Kind: "vllm", Sources: sourceAt("b", "ipc:///does/not/exist/either"), Models: []string{"n"}}
	more := Engine{Name: "c", Kind: "vllm", Sources: sourceAt("c", "ipc:///nor/this"), Models: []string{"n"}}
	var engines atomic.Pointer[[]Engine]
	engines.Store(&[]Engine{a})
	var mu sync.Mutex
	cleared := ""
	f := newFollower(t, Options{
		Engines: func() []Engine { return *engines.Load() }, Every: time.Millisecond,
		Cleared: func(models []string) { mu.Lock(); defer mu.Unlock(); cleared += strings.Join(models, ",") + ";" },
	})
	_, stop := start(t, f)
	var before *generation
	for _, c := range []struct {
		engines []Engine
		cleared string // so far
		kept    string // models
	}{
		{[]Engine{a}, "", ""},
		{[]Engine{b, a}, "", "m"},
		{[]Engine{a, b}, "", "m n"},
		{[]Engine{a, b, more}, "n;", "m"},
		{[]Engine{more, b}, "n;m;n;", ""}, // another order of those that serve one model is another fleet
		{nil, "n;m;n;n;", ""},
	} {
		engines.Store(&c.engines)
		var now *generation
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			now = f.now.Load()
			mu.Lock()
			done := cleared == c.cleared
			mu.Unlock()
			if done && (now == nil) == (c.engines == nil) &&
				(now == nil || slices.EqualFunc(now.engines, c.engines, func(a, b Engine) bool { return a.Name == b.Name })) {
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
	engines.Store(&[]Engine{a})
	stop()
	if f.Snapshot() != nil || cleared != "n;m;n;n;" {
		t.Errorf("after the end: %+v, cleared %q", f.Snapshot(), cleared)
	}
}

// What is left of a part is reported by its place in the body.
func TestShrunkParts(t *testing.T) {
	var mu sync.Mutex
	got := map[string]int{}
	f := newFollower(
		t, Options{Shrunk: func(_ contextpilot.Scope, id string, tokens int) { mu.Lock(); defer mu.Unlock(); got[id] = tokens }},
	)
	p := placed{
		size: 1000, tokens: 500, parts: []proxy.Part{
			{ID: "a", Start: 100, Length: 400, Tokens: 80}, {ID: "b", Start: 600, Length: 200, Tokens: 40}, {ID: "none", Start: 900},
		},
	}
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
