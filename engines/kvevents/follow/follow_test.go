package follow_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/follow"
	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
	"github.com/ragpilot/ragpilot/engines/sglang"
	"github.com/ragpilot/ragpilot/engines/vllm"
	"github.com/ragpilot/ragpilot/internal/testkit/kvfake"
)

func TestMain(m *testing.M) {
	// The publisher's side of the library, which only the fake uses, never ends this one.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/go-zeromq/zmq4.(*pubMWriter).run"))
}

var (
	_ vllm.Source   = (*follow.Follower)(nil)
	_ sglang.Source = (*follow.Follower)(nil)
)

// What an engine says of its blocks reaches the pilot as what happened to requests.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	endpoint, replay := "ipc://"+filepath.Join(dir, "events"), "ipc://"+filepath.Join(dir, "replay")
	engine := &kvfake.Engine{Topic: "kv@a@m"}
	if err := engine.Start(endpoint, replay); err != nil {
		t.Fatal(err)
	}
	defer engine.Stop()
	f, err := follow.New(follow.Config{Source: kvevents.Source{Name: "r0", Endpoint: endpoint, Replay: replay}})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var got []string
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- f.Run(ctx, func(events ...contextpilot.Event) {
			mu.Lock()
			defer mu.Unlock()
			for _, ev := range events {
				got = append(got, fmt.Sprint(ev.Kind, " ", ev.Request, " ", ev.Tokens))
			}
		})
	}()
	said := func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(got, ", ")
	}
	wait := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not so: %s; events %s; status %+v", what, said(), f.Status())
			}
		}
	}
	wait("connected", engine.Subscribers)

	tokens := make([]uint32, 48)
	ints := make([]int, len(tokens))
	for i := range tokens {
		tokens[i], ints[i] = uint32(i), i
	}
	hashes := []kvevents.Hash{kvevents.Uint(1), kvevents.Uint(2), kvevents.Uint(3)}
	f.Prompt("a", tokens, residency.Key{})
	engine.Publish(kvfake.Payload(kvfake.Map, 1, 0, kvevents.Event{Kind: kvevents.Stored, Hashes: hashes, Tokens: ints, BlockSize: 16}))
	wait("all of it is resident", func() bool { n, _ := f.Resident("a"); return n == 48 })
	f.Answered(contextpilot.Event{Kind: contextpilot.Served, Request: "a"})
	engine.Publish(kvfake.Payload(kvfake.Map, 2, 0, kvevents.Event{Kind: kvevents.Removed, Hashes: hashes[2:]}))
	wait("the pilot knows", func() bool { return said() == "shrunk a 32" })
	engine.Publish(kvfake.Payload(kvfake.Map, 3, 0, kvevents.Event{Kind: kvevents.Removed, Hashes: hashes[:2]}))
	wait("the pilot knows", func() bool { return strings.HasSuffix(said(), "gone a 0") })

	cancel()
	if err := <-ended; err != nil && ctx.Err() == nil {
		t.Error(err)
	}
}

// following runs a follower, whose sink is called with a lock held, as an engine's is.
type following struct {
	*follow.Follower

	t     *testing.T
	calls atomic.Int32 // of the sink, counted before it waits for turn
	turn  sync.Mutex
	got   []string // guarded by turn
}

func newFollowing(t *testing.T, cfg follow.Config) *following {
	t.Helper()
	f, err := follow.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	x := &following{Follower: f, t: t}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- f.Run(ctx, func(events ...contextpilot.Event) {
			x.calls.Add(1)
			x.turn.Lock()
			defer x.turn.Unlock()
			for _, ev := range events {
				x.got = append(x.got, fmt.Sprint(ev.Kind, " ", ev.Request, " ", ev.Tokens))
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return x
}

// followed is a follower that has connected to an engine without replay.
func followed(t *testing.T) (*following, *kvfake.Engine) {
	t.Helper()
	endpoint := "ipc://" + filepath.Join(t.TempDir(), "events")
	engine := &kvfake.Engine{Topic: "kv@a@m"}
	if err := engine.Start(endpoint, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Stop)
	x := newFollowing(t, follow.Config{Source: kvevents.Source{Name: "r0", Endpoint: endpoint}})
	x.await("connected", engine.Subscribers)
	return x, engine
}

func (x *following) said() string {
	x.turn.Lock()
	defer x.turn.Unlock()
	return strings.Join(x.got, ", ")
}

func (x *following) await(what string, ok func() bool) {
	x.t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			x.t.Fatalf("not so: %s; events %s; status %+v", what, x.said(), x.Status())
		}
	}
}

// resident waits until a request has so many tokens in the cache.
func (x *following) resident(id string, want int) {
	x.t.Helper()
	x.await(fmt.Sprintf("%s has %d tokens", id, want), func() bool { n, _ := x.Resident(id); return n == want })
}

// answered reports it as an engine does, one event at a time.
func (x *following) answered(id string) {
	x.turn.Lock()
	defer x.turn.Unlock()
	x.Answered(contextpilot.Event{Kind: contextpilot.Served, Request: id})
}

// block is the only one of a prompt.
func block(kind kvevents.Kind) kvevents.Event {
	ev := kvevents.Event{Kind: kind, Hashes: []kvevents.Hash{kvevents.Uint(7)}}
	if kind == kvevents.Stored {
		ev.Tokens, ev.BlockSize = make([]int, 16), 16
	}
	return ev
}

// What is lost before its request's answer ends is reported at that end, in another goroutine: the engine that reports the answer
// is the one that gets the report of the loss.
func TestLostBeforeTheAnswer(t *testing.T) {
	x, engine := followed(t)
	x.Prompt("a", make([]uint32, 16), residency.Key{})
	engine.Publish(kvfake.Payload(kvfake.Map, 1, 0, block(kvevents.Stored)))
	x.resident("a", 16)
	engine.Publish(kvfake.Payload(kvfake.Map, 2, 0, block(kvevents.Removed)))
	x.resident("a", 0)
	x.answered("a")
	x.await("it is reported", func() bool { return strings.HasSuffix(x.said(), "gone a 0") })
}

// A sink that takes nothing for long gets the report that everything is lost, and what comes then.
func TestSinkThatFallsBehind(t *testing.T) {
	x, engine := followed(t)
	const requests = 700
	for i := range requests {
		x.Prompt(fmt.Sprint("r", i), make([]uint32, 16), residency.Key{})
	}
	x.turn.Lock()
	for i := range 100 { // each is an event for every request
		engine.Publish(kvfake.Payload(kvfake.Map, float64(i), 0, block(kvevents.Stored)))
		engine.Publish(kvfake.Payload(kvfake.Map, float64(i), 0, block(kvevents.Removed)))
		// The sink waits with the first events alone, so the number of those that come after is known.
		for end := time.Now().Add(time.Minute); i == 0 && x.calls.Load() == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				x.turn.Unlock()
				t.Fatal("the sink was not called")
			}
		}
	}
	x.await("all of it", func() bool { all := x.Status(); return len(all) == 1 && all[0].Batches == 200 })
	x.turn.Unlock()
	x.await("the end", func() bool { return strings.Contains(x.said(), "cleared") && strings.HasSuffix(x.said(), "r699 0") })
	x.turn.Lock()
	defer x.turn.Unlock()
	if n := len(x.got); n > 1<<16+3*requests {
		t.Errorf("%d events were kept", n)
	}
}

// What a publisher held that has gone, and was forgotten for another one, is lost; when it comes back it begins anew.
func TestForgottenPublisher(t *testing.T) {
	endpoint := "ipc://" + filepath.Join(t.TempDir(), "events")
	x := newFollowing(t, follow.Config{
		Source: kvevents.Source{Name: "all", Endpoint: endpoint, Listen: true}, Events: kvevents.Config{MaxPublishers: 1},
	})
	meet := func(topic, id string) *kvfake.Engine {
		t.Helper()
		e := &kvfake.Engine{Topic: topic}
		if err := e.Connect(endpoint, ""); err != nil {
			t.Fatal(err)
		}
		x.await("a subscription", e.Subscribers)
		e.Publish(kvfake.Payload(kvfake.Map, 1, 0, block(kvevents.Stored)))
		x.await("the publisher", func() bool { all := x.Status(); return len(all) == 1 && all[0].Topic == topic && all[0].Batches == 1 })
		x.Prompt(id, make([]uint32, 16), residency.Key{})
		x.resident(id, 16)
		x.answered(id)
		return e
	}
	leave := func(e *kvfake.Engine) {
		e.Stop()
		x.await("its end", func() bool { return !x.Status()[0].Connected })
	}
	leave(meet("kv@a", "a"))
	b := meet("kv@b", "b")
	x.await("the first is reported as lost", func() bool { return x.said() == "gone a 0, cleared  0" })
	leave(b)
	a := meet("kv@a", "c")
	x.await("the second is reported as lost", func() bool { return x.said() == "gone a 0, cleared  0, gone b 0, cleared  0" })
	if n := len(x.Caches().Stats()); n != 1 {
		t.Errorf("%d caches, one publisher", n)
	}
	a.Publish(kvfake.Payload(kvfake.Map, 2, 0, block(kvevents.Removed)))
	x.resident("c", 0)
	a.Stop()
}

func TestErrors(t *testing.T) {
	if _, err := follow.New(follow.Config{}); err == nil || !strings.Contains(err.Error(), "Source.Endpoint") {
		t.Error(err)
	}
	if _, err := follow.New(follow.Config{Source: kvevents.Source{Endpoint: "nonsense"}}); err == nil {
		t.Error("an endpoint that is none was taken")
	}
}

func Example() {
	follower, err := follow.New(follow.Config{Source: kvevents.Source{
		Name: "r0", Endpoint: "tcp://127.0.0.1:5557",
		Replay: "tcp://127.0.0.1:5558",
	}})
	if err != nil {
		panic(err)
	}
	follower.Prompt("request-1", []uint32{1, 2, 3}, residency.Key{})
	tokens, complete := follower.Resident("request-1")
	fmt.Println(tokens, complete)
	follower.Aborted("request-1") // its answer broke off
	// Output: 0 false
}

// Two ranks of a server with two tenants: a request is lost when no rank has any of it, and its own tenant gets the report.
func TestFollowRanksAndTenants(t *testing.T) {
	dir := t.TempDir()
	var sources []kvevents.Source
	var ranks []*kvfake.Engine
	for _, name := range []string{"dp0", "dp1"} {
		s := kvevents.Source{
			Name: name, Endpoint: "ipc://" + filepath.Join(dir, name), Replay: "ipc://" + filepath.Join(dir, name+"r"),
			Rank: kvevents.AnyRank,
		}
		e := &kvfake.Engine{Topic: "kv"}
		if err := e.Start(s.Endpoint, s.Replay); err != nil {
			t.Fatal(err)
		}
		defer e.Stop()
		sources, ranks = append(sources, s), append(ranks, e)
	}
	f, err := follow.New(follow.Config{Sources: sources})
	if err != nil {
		t.Fatal(err)
	}
	reports := make(chan contextpilot.Event, 16)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- f.Run(ctx, func(events ...contextpilot.Event) {
			for _, ev := range events {
				reports <- ev
			}
		})
	}()
	tokens := make([]uint32, 32)
	ints := make([]int, len(tokens))
	stored := kvevents.Event{Kind: kvevents.Stored, Hashes: []kvevents.Hash{kvevents.Uint(1), kvevents.Uint(2)}, Tokens: ints, BlockSize: 16}
	removed := kvevents.Event{Kind: kvevents.Removed, Hashes: stored.Hashes}
	red := contextpilot.Scope{Tenant: "red"}
	f.PromptIn(red, "1", tokens, residency.Key{})
	f.PromptIn(contextpilot.Scope{Tenant: "blue"}, "2", tokens, residency.Key{Salt: "blue"}) // whose blocks are others
	for _, e := range ranks {
		e.Publish(kvfake.Payload(kvfake.Map, 1, 0, stored))
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if all := f.Caches().Stats(); len(all) == 2 && all[0].Hashes == 2 && all[1].Hashes == 2 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("not stored: ", f.Status())
		}
	}
	f.Answered(contextpilot.Event{Kind: contextpilot.Served, Request: "1"}, contextpilot.Event{Kind: contextpilot.Served, Request: "2"})
	for i, want := range []contextpilot.Event{
		{Kind: contextpilot.Shrunk, Scope: red, Request: "1", Tokens: 32, Prompt: 32},
		{Kind: contextpilot.Gone, Scope: red, Request: "1"},
	} {
		ranks[i].Publish(kvfake.Payload(kvfake.Map, 2, 0, removed))
		select {
		case got := <-reports:
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatal("nothing was reported")
		}
	}
	cancel()
	if err := <-ended; err != nil && ctx.Err() == nil {
		t.Error(err)
	}
}
