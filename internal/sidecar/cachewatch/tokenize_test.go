package cachewatch

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// asking makes a follower of engines that serve these models and have a tokenizer, and returns how often that was asked. It is not asked
// before a fleet's tokenize runs.
func asking(t *testing.T, o Options, models ...string) (f *Follower, asked *atomic.Int64) {
	t.Helper()
	f, asked = newFollower(t, o), new(atomic.Int64)
	g := new(generation)
	for _, m := range models {
		fl := newFleet(f, []Engine{{Name: m, Kind: "sglang", Models: []string{m}}})
		fl.engines[0].server.tokenize = func(context.Context, []byte) ([]uint32, error) {
			asked.Add(1)
			return []uint32{1, 2, 3}, nil
		}
		fl.engines[0].use(features{tokenize: true})
		g.fleets = append(g.fleets, fl)
	}
	f.now.Store(g)
	return f, asked
}

// askAll asks for the tokens of all that wait.
func askAll(t *testing.T, f *Follower) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.now.Load().fleets[0].tokenize(ctx)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	for end := time.Now().Add(time.Minute); f.now.Load().held() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("bodies are kept: ", f.now.Load().held())
		}
	}
}

// A prompt whose answer ends before the tokenizer was asked takes one place, and keeps it.
func TestAskedOnce(t *testing.T) {
	f, asked := asking(t, Options{MaxBytes: func() int64 { return 1 << 20 }}, "m")
	for i := range mostAsking + 1 {
		p := f.Follow(proxy.Prompt{ID: fmt.Sprint(i), Model: "m", Body: []byte(`{"model":"m"}`), Passes: true})
		p.Answer(&http.Response{StatusCode: http.StatusOK})
		p.Ended(true)
		p.Ended(true)
	}
	if n := f.Snapshot().Prompts.Missing; n != 1 {
		t.Errorf("%d prompts found no place, want the last one", n)
	}
	askAll(t, f)
	if c := f.Snapshot().Prompts; c.Followed != mostAsking+1 || c.Learned != mostAsking || asked.Load() != mostAsking {
		t.Errorf("%+v, asked %d times for the tokens of %d", c, asked.Load(), mostAsking)
	}
}

// Bodies are kept for the tokenizer within a number of bytes, whatever becomes of their requests.
func TestBodiesForTheTokenizerAreBounded(t *testing.T) {
	most := int64(1000)
	f, _ := asking(t, Options{MaxBytes: func() int64 { return most }}, "m", "n")
	follow := func(model string, size int) proxy.Followed {
		return f.Follow(
			proxy.Prompt{
				ID: fmt.Sprint(f.counts.followed.Load()), Model: model, Body: []byte(
					`{"t":"` + strings.Repeat("x", size-8) + `"}`,
				), Passes: true,
			},
		)
	}
	check := func(what string, held int64, missing uint64) {
		t.Helper()
		if c := f.Snapshot().Prompts; f.now.Load().held() != held || c.Missing != missing || c.Unknown != 0 {
			t.Errorf("%s: %d bytes are kept, want %d; %+v, want %d missing", what, f.now.Load().held(), held, c, missing)
		}
	}
	large, small := follow("m", 3000), follow("m", 10)
	if check("one alone may be of any length", 3000, 1); large == nil || small != nil {
		t.Fatal("the first is not followed, or the second is")
	}
	large.Ended(false)
	check("it was not answered", 0, 1)
	all := []proxy.Followed{follow("m", 400), follow("n", 400), follow("n", 400)}
	if check("engines of other models have the same room", 800, 2); all[2] != nil {
		t.Fatal("too many are followed")
	}
	all[1].Ended(false)
	all[1].Ended(false)
	all[0].Answer(&http.Response{StatusCode: http.StatusOK})
	all[0].Ended(true)
	check("it waits", 400, 2)
	askAll(t, f)
	check("it was asked for", 0, 2)
	most = 1 << 20
	for range mostAsking + 3 {
		follow("m", 100).Ended(true)
	}
	check("the queue is full", 100*mostAsking, 5)
	askAll(t, f)
	check("all were asked for", 0, 5)
}
