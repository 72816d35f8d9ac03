package follow_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/follow"
	"github.com/ragpilot/ragpilot/engines/kvevents/internal/fake"
	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
	"github.com/ragpilot/ragpilot/engines/sglang"
	"github.com/ragpilot/ragpilot/engines/vllm"
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
	engine := &fake.Engine{Topic: "kv@a@m"}
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
		for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
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
	engine.Publish(fake.Payload(fake.Map, 1, 0, kvevents.Event{Kind: kvevents.Stored, Hashes: hashes, Tokens: ints, BlockSize: 16}))
	wait("all of it is resident", func() bool { n, _ := f.Index().Resident("a"); return n == 48 })
	f.Answered(contextpilot.Event{Kind: contextpilot.Served, Request: "a"})
	engine.Publish(fake.Payload(fake.Map, 2, 0, kvevents.Event{Kind: kvevents.Removed, Hashes: hashes[2:]}))
	wait("the pilot is told", func() bool { return said() == "shrunk a 32" })
	engine.Publish(fake.Payload(fake.Map, 3, 0, kvevents.Event{Kind: kvevents.Removed, Hashes: hashes[:2]}))
	wait("the pilot is told", func() bool { return strings.HasSuffix(said(), "gone a 0") })

	cancel()
	if err := <-ended; err != nil && ctx.Err() == nil {
		t.Error(err)
	}
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
	follower, err := follow.New(follow.Config{Source: kvevents.Source{Name: "r0", Endpoint: "tcp://127.0.0.1:5557", Replay: "tcp://127.0.0.1:5558"}})
	if err != nil {
		panic(err)
	}
	follower.Prompt("request-1", []uint32{1, 2, 3}, residency.Key{})
	tokens, complete := follower.Index().Resident("request-1")
	fmt.Println(tokens, complete)
	// Output: 0 false
}
