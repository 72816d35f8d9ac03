package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/publish"
	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// prompt is what was sent to a server once.
type prompt struct {
	tokens []int32
	salt   string
}

func (p prompt) ints() []int {
	all := make([]int, len(p.tokens))
	for i, t := range p.tokens {
		all[i] = int(t)
	}
	return all
}

// follow runs a subscriber that knows of a server what it publishes, and nothing else.
func follow(t testing.TB, at publish.Config) *residency.Index {
	t.Helper()
	index := residency.New(residency.Config{})
	sub := testkit.Must(kvevents.New(kvevents.Config{
		Sources: []kvevents.Source{{Name: "r0", Endpoint: at.Endpoint, Replay: at.Replay, Topic: at.Topic}},
		Sink:    func(kvevents.Publisher) kvevents.Sink { return index },
		Probe:   50 * time.Millisecond, Backoff: 5 * time.Millisecond, MaxBackoff: 50 * time.Millisecond,
	}))(t)
	testkit.Run(t, sub.Run)
	return index
}

// differences compares, for every prompt, what the subscriber takes for resident with what the engine has. The engine computes a
// prompt's last token in any case.
func differences(r *rig, index *residency.Index, prompts []prompt) (list []string) {
	for i, p := range prompts {
		want := r.engine.Prefix(p.tokens, p.salt)
		got := min(index.Prefix(p.ints(), residency.Key{Salt: p.salt}), (len(p.tokens)-1)/16*16)
		if got != want {
			list = append(list, fmt.Sprintf("prompt %d: subscriber %d, engine %d of %d tokens", i, got, want, len(p.tokens)))
		}
	}
	if s := index.Stats(); !s.Complete {
		list = append(list, fmt.Sprintf("incomplete: %+v", s))
	}
	return list
}

// agree waits until the subscriber has caught up and equals the engine.
func agree(t *testing.T, when string, r *rig, index *residency.Index, prompts []prompt) {
	t.Helper()
	resident := 0
	for _, p := range prompts {
		resident += r.engine.Prefix(p.tokens, p.salt)
	}
	s := r.engine.Stats()
	t.Logf("%s: %d prompts with %d resident tokens, %d blocks cached, %d evicted", when, len(prompts), resident, s.CachedBlocks, s.Evictions)
	var last []string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if last = differences(r, index, prompts); len(last) == 0 {
			return
		}
	}
	t.Fatalf("%s: %d differences, the first: %s", when, len(last), last[0])
}

// talk sends prompts that share prefixes in many ways, several at a time, and some that are given up. It returns all of them.
func talk(t *testing.T, r *rig, random *rand.Rand, requests int) (prompts []prompt) {
	t.Helper()
	var documents [6][]int32
	for i := range documents {
		documents[i] = r.engine.Tokenize(
			fmt.Sprintf("Document %d says that boat %d leaves the harbour with tide number %d of the day.", i, 7*i, 11*i),
		)
	}
	salts := []string{"", "", "blue", "red"}
	for range requests {
		p := prompt{salt: salts[random.IntN(len(salts))]}
		for _, d := range random.Perm(len(documents))[:1+random.IntN(4)] {
			p.tokens = append(p.tokens, documents[d]...)
		}
		prompts = append(prompts, p)
	}
	limit := make(chan struct{}, 4)
	var group sync.WaitGroup
	for i, p := range prompts {
		limit <- struct{}{}
		group.Go(func() {
			defer func() { <-limit }()
			body, err := json.Marshal(
				map[string]any{"prompt": p.tokens, "cache_salt": p.salt, "max_tokens": 1 + i%40, "ignore_eos": true, "stream": true},
			)
			if err != nil {
				t.Error(err)
				return
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%7 == 6 {
				time.AfterFunc(time.Duration(i%5)*time.Millisecond, cancel)
				r.tryOpen(ctx, string(body))
				return
			}
			if got := r.post(t, textPath, string(body)); got.status != 200 {
				t.Errorf("status %d: %s", got.status, got.body)
			}
		})
	}
	group.Wait()
	await(t, "the end of all requests", func() bool { s := r.engine.Stats(); return s.Running+s.Waiting == 0 })
	return prompts
}

// Events alone show what the engine has: through evictions, an emptied cache, and a restart, also to one who comes late.
func TestResidentSetFromEvents(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const pageBytes = 16 * 2 * 2 * 2 * 16 * 4 // tokens, layers, keys and values, heads, their length, bytes of a number
	small := func(s *settings) {
		s.events = &loopback
		s.engine.CacheBytes = 40 * pageBytes
	}
	r := start(t, small)
	index := follow(t, r.publisher.Config())
	prompts := talk(t, r, random, 60)
	agree(t, "after evictions", r, index, prompts)
	if s := r.engine.Stats(); s.Evictions == 0 || s.HitTokens == 0 {
		t.Fatalf("nothing was put to the test: %+v", s)
	}
	await(t, "an empty cache", func() bool { return r.post(t, "/reset_prefix_cache", "").object(t)["success"] == true })
	agree(t, "after it was emptied", r, index, prompts)
	prompts = append(prompts, talk(t, r, random, 30)...)
	agree(t, "and filled again", r, index, prompts)
	agree(t, "for one who comes late", r, follow(t, r.publisher.Config()), prompts)

	published, at := r.publisher.Stats(), r.publisher.Config()
	if published.Dropped > 0 {
		t.Errorf("%+v", published)
	}
	r.stop(t)
	r = start(t, func(s *settings) {
		small(s)
		s.events = &at
	})
	agree(t, "after a restart", r, index, prompts)
	prompts = append(prompts, talk(t, r, random, 10)...)
	if s := r.publisher.Stats(); s.Batches >= published.Batches {
		t.Fatalf("%d batches after the restart, %d before: numbers that begin anew were not put to the test", s.Batches, published.Batches)
	}
	agree(t, "after a restart, and some requests", r, index, prompts)
	prompts = append(prompts, talk(t, r, random, 60)...)
	agree(t, "and more", r, index, prompts)
}

// The engine's cache may also be emptied while requests use it.
func TestResidentSetWhileCleared(t *testing.T) {
	r := start(t, func(s *settings) { s.events = &loopback })
	index := follow(t, r.publisher.Config())
	stop := make(chan struct{})
	var clearing sync.WaitGroup
	clearing.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(3 * time.Millisecond):
				r.engine.Clear()
			}
		}
	})
	prompts := talk(t, r, rand.New(rand.NewPCG(3, 4)), 60)
	close(stop)
	clearing.Wait()
	prompts = append(prompts, talk(t, r, rand.New(rand.NewPCG(5, 6)), 5)...)
	agree(t, "after it was emptied many times", r, index, prompts)
}
