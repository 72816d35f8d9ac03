package residency_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
)

// gathered keeps what a group reports.
type gathered struct {
	mu   sync.Mutex
	list []string
}

func (g *gathered) take(us []residency.Update) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, u := range us {
		switch {
		case u.Cleared != 0:
			g.list = append(g.list, "cleared: "+u.Cleared.String())
		case u.Lost:
			g.list = append(g.list, u.RequestID+" lost")
		default:
			g.list = append(g.list, fmt.Sprint(u.RequestID, " ", u.Resident))
		}
	}
}

func (g *gathered) since() (out []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	out, g.list = g.list, nil
	return out
}

// batch stores or removes blocks 0…n of a prompt of counted-up tokens, in a cache that names them from a base on.
func batch(kind kvevents.Kind, base, from, to int) *kvevents.Batch {
	ev := kvevents.Event{Kind: kind, BlockSize: 4}
	for i := from; i < to; i++ {
		ev.Hashes = append(ev.Hashes, kvevents.Uint(uint64(base+i)))
		if kind == kvevents.Stored {
			ev.Tokens = append(ev.Tokens, 4*i, 4*i+1, 4*i+2, 4*i+3)
		}
	}
	if kind == kvevents.Stored && from > 0 {
		ev.Parent = kvevents.Uint(uint64(base + from - 1))
	}
	return &kvevents.Batch{Events: []kvevents.Event{ev}}
}

func counted(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// A request is as resident as where most of it is, and lost when no cache has any of it.
func TestGroup(t *testing.T) {
	var got gathered
	g := residency.NewGroup(residency.Config{BlockSize: 4, OnUpdate: got.take})
	a, b := g.Index("a"), g.Index("b")
	if g.Index("a") != a {
		t.Error("another index under the same name")
	}
	check := func(what string, tokens int, want ...string) {
		t.Helper()
		if n, _ := g.Resident("r"); n != tokens {
			t.Errorf("%s: %d tokens resident, want %d", what, n, tokens)
		}
		if diff := cmp.Diff(want, got.since()); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	g.Register("r", counted(17), residency.Key{})
	a.Apply(batch(kvevents.Stored, 100, 0, 1)) // what all prompts begin with
	b.Apply(batch(kvevents.Stored, 200, 0, 4))
	g.Served("r")
	check("stored", 16)
	if n := g.Prefix(counted(9), residency.Key{}); n != 8 {
		t.Errorf("%d tokens of a prompt are resident, want 8", n)
	}
	a.Apply(batch(kvevents.Removed, 100, 0, 1))
	check("lost in the cache that had least", 16, "r 16")
	b.Apply(batch(kvevents.Removed, 200, 2, 4))
	check("shrunk", 8, "r 8")
	a.Apply(batch(kvevents.Stored, 100, 0, 3)) // after a lost request is dropped it is not followed there
	b.Clear(kvevents.Restarted)
	check("the other one holds other blocks", 0, "r lost")
	a.Clear(kvevents.Restarted)
	check("nothing is held", 0, "cleared: restarted")
}

// Served may come before the tokens, and the tokens after all blocks.
func TestGroupLateTokens(t *testing.T) {
	var got gathered
	g := residency.NewGroup(residency.Config{OnUpdate: got.take})
	a, b := g.Index("a"), g.Index("b")
	a.Complete(true)
	a.Apply(batch(kvevents.Stored, 1, 0, 3))
	if _, complete := g.Resident("r"); complete {
		t.Error("complete, while b is not")
	}
	b.Complete(true)
	g.Register("r", counted(12), residency.Key{})
	g.Served("r")
	if n, complete := g.Resident("r"); n != 12 || !complete {
		t.Errorf("%d tokens, complete %v", n, complete)
	}
	a.Apply(batch(kvevents.Removed, 1, 0, 3))
	if diff := cmp.Diff([]string{"r lost"}, got.since()); diff != "" {
		t.Error(diff)
	}
}

// A prompt that waits for the block size is kept once, however many caches may get it.
func TestGroupKeepsAPromptOnce(t *testing.T) {
	const tokens = 1 << 20
	prompt := counted(tokens)
	held := func(caches int) int64 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		g := residency.NewGroup(residency.Config{})
		for i := range caches {
			g.Index(fmt.Sprint(i))
		}
		g.Register("r", prompt, residency.Key{})
		runtime.GC()
		runtime.ReadMemStats(&after)
		for _, s := range g.Stats() {
			if s.Waiting != 1 || s.Kept != tokens {
				t.Errorf("%+v", s)
			}
		}
		return int64(after.HeapAlloc) - int64(before.HeapAlloc)
	}
	if n := held(8); n > 3*4*tokens/2 {
		t.Errorf("eight caches hold %d bytes of a prompt of %d tokens", n, tokens)
	}
}

// Whatever several caches store and evict at the same time: in the end a request is lost, once, when none holds it.
func TestGroupConcurrently(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var got gathered
		g := residency.NewGroup(residency.Config{BlockSize: 4, OnUpdate: got.take})
		stored := rapid.SliceOfN(rapid.IntRange(0, 4), 3, 3).Draw(t, "stored")
		caches := make([]*residency.Index, len(stored))
		some := false
		for i := range caches {
			caches[i] = g.Index(fmt.Sprint(i))
			some = some || stored[i] > 0
		}
		g.Register("r", counted(16), residency.Key{})
		for i, n := range stored {
			caches[i].Apply(batch(kvevents.Stored, 1, 0, n))
		}
		g.Served("r")
		var own sync.WaitGroup
		for i, n := range stored {
			own.Go(func() {
				for at := n; at > 0; at-- {
					caches[i].Apply(batch(kvevents.Removed, 1, at-1, at))
				}
			})
		}
		own.Wait()
		lost := 0
		for _, line := range got.since() {
			if line == "r lost" {
				lost++
			}
		}
		if tokens, _ := g.Resident("r"); tokens != 0 || some && lost != 1 || !some && lost != 0 {
			t.Fatalf("stored %v: %d tokens resident, lost %d times", stored, tokens, lost)
		}
	})
}

// A size of blocks that is assumed spares the wait for the first event, and a wrong one gives way to it.
func TestAssumedBlockSize(t *testing.T) {
	for size, want := range map[int]int{4: 12, 8: 0, 2: 0} {
		x := residency.New(residency.Config{BlockSize: size})
		x.Register("r", counted(12), residency.Key{})
		if x.Stats().Waiting != 0 {
			t.Error("it waits")
		}
		x.Apply(batch(kvevents.Stored, 1, 0, 3))
		if n, _ := x.Resident("r"); n != want {
			t.Errorf("assumed %d: %d tokens resident, want %d", size, n, want)
		}
		x.Register("r", counted(12), residency.Key{})
		if n, _ := x.Resident("r"); n != 12 {
			t.Errorf("assumed %d: %d tokens resident afterwards, want 12", size, n)
		}
	}
}

// What an engine cleared before anything was heard of it is no news: a replay from its start reports it.
func TestClearedBeforeWeCame(t *testing.T) {
	var got gathered
	x := residency.New(residency.Config{OnUpdate: got.take})
	cleared := &kvevents.Batch{Events: []kvevents.Event{{Kind: kvevents.Cleared}}}
	x.Apply(cleared)
	if list := got.since(); len(list) > 0 {
		t.Errorf("reported %v", list)
	}
	x.Apply(batch(kvevents.Stored, 1, 0, 3))
	x.Apply(cleared)
	x.Complete(true)
	x.Complete(false) // there may be blocks that we know nothing of
	x.Apply(cleared)
	if diff := cmp.Diff([]string{"cleared: engine cleared", "cleared: engine cleared"}, got.since()); diff != "" {
		t.Error(diff)
	}
}

// What the engine clears after that was reported is no news either: vLLM publishes it with the first blocks of the next request,
// which was planned in the meantime.
func TestClearedTwice(t *testing.T) {
	var got gathered
	x := residency.New(residency.Config{OnUpdate: got.take})
	x.Complete(true)
	x.Register("a", counted(12), residency.Key{})
	x.Apply(batch(kvevents.Stored, 1, 0, 3))
	x.Served("a")
	x.Clear(kvevents.Requested)
	if diff := cmp.Diff([]string{"a lost", "cleared: requested"}, got.since()); diff != "" {
		t.Error(diff)
	}
	x.Register("b", counted(8), residency.Key{})
	b := batch(kvevents.Stored, 11, 0, 2)
	b.Events = append([]kvevents.Event{{Kind: kvevents.Cleared}}, b.Events...)
	x.Apply(b)
	x.Served("b")
	if list := got.since(); len(list) > 0 {
		t.Errorf("reported %v", list)
	}
	if n, complete := x.Resident("b"); n != 8 || !complete {
		t.Errorf("%d tokens, complete %v", n, complete)
	}
	x.Apply(&kvevents.Batch{Events: []kvevents.Event{{Kind: kvevents.Cleared}}})
	if diff := cmp.Diff([]string{"b lost", "cleared: engine cleared"}, got.since()); diff != "" {
		t.Error(diff)
	}
}

// Each tenant hears of its own requests, and all of a clearing.
func TestScopes(t *testing.T) {
	red, blue := contextpilot.Scope{Tenant: "red"}, contextpilot.Scope{Tenant: "blue", Model: "m"}
	s := residency.NewScopes(2)
	none := s.Events([]residency.Update{{Cleared: kvevents.Restarted}})
	if len(none) != 1 || none[0].Kind != contextpilot.Cleared || none[0].Scope != (contextpilot.Scope{}) {
		t.Errorf("without a request: %v", none)
	}
	s.Add("forgotten", red)
	s.Add("1", red)
	s.Add("2", blue)
	got := s.Events([]residency.Update{
		{RequestID: "forgotten", Lost: true},
		{RequestID: "1", Resident: 32},
		{RequestID: "2", Lost: true},
		{RequestID: "2", Resident: 16},
		{RequestID: "x"},
	})
	want := []contextpilot.Event{
		{Kind: contextpilot.Shrunk, Scope: red, Request: "1", Tokens: 32},
		{Kind: contextpilot.Gone, Scope: blue, Request: "2"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	scopes := map[contextpilot.Scope]bool{}
	for _, ev := range s.Events([]residency.Update{{Cleared: kvevents.Restarted}}) {
		scopes[ev.Scope] = ev.Kind == contextpilot.Cleared
	}
	if diff := cmp.Diff(map[contextpilot.Scope]bool{red: true, blue: true}, scopes); diff != "" {
		t.Error(diff)
	}
}
