package local_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
)

// Many streams at a time, in a cache that is too small for them; some break off anywhere: for five seconds, or a minute with
// RAGPILOT_FAULTS=1. Whatever the rest do, an answer is the one that the request gets alone.
func TestStreams(t *testing.T) {
	const streams = 64
	length := 5 * time.Second
	if os.Getenv("RAGPILOT_FAULTS") == "1" {
		length = time.Minute
	}
	path := tiny(t)
	s := &streamsTest{requests: make([]engines.Request, 24), scored: text(5, 40)}
	alone := open(t, 200, local.Config{Model: path, Threads: 1})
	for i := range s.requests {
		s.requests[i] = ask("", "Some of the prompts begin alike, "+text(i/3, 30)+text(i, 10*(i%12)), 1+7*i%50)
		alone.Clear()
		s.answers = append(s.answers, generate(t, alone, s.requests[i]).Text)
		score, err := alone.Score(t.Context(), s.requests[i], s.scored, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.scores = append(s.scores, score.LogProbs)
	}
	l := newLedger()
	s.engine = open(t, 60, local.Config{Model: path, Threads: 2, Step: 48, OnCache: l.cache})
	defer s.engine.Subscribe(func(...contextpilot.Event) { s.events.Add(1) })()
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var wait sync.WaitGroup
	for i := range streams {
		wait.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 2))
			for ctx.Err() == nil {
				s.stream(t, random)
			}
		})
	}
	wait.Wait()
	idle(t, s.engine)
	stats := s.engine.Stats()
	eventually(t, "events agree with the cache", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.blocks) == stats.CachedBlocks
	})
	if s.ended.Load() == 0 || s.cancelled.Load() == 0 || s.events.Load() == 0 || stats.Evictions == 0 || stats.Preemptions == 0 ||
		len(l.faults) > 0 {
		t.Errorf("%d requests ended, %d were cancelled: %+v; faults %v", s.ended.Load(), s.cancelled.Load(), stats, l.faults)
	}
	t.Logf("%d requests ended, %d were cancelled: %+v", s.ended.Load(), s.cancelled.Load(), stats)
}

type streamsTest struct {
	engine   *local.Engine
	requests []engines.Request
	answers  []string
	scored   string
	scores   [][]float64

	ended, cancelled, events atomic.Int64
}

// stream runs a request to its end or not.
func (s *streamsTest) stream(t *testing.T, random *rand.Rand) {
	i := random.IntN(len(s.requests))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	patience := random.IntN(40) // pieces
	switch random.IntN(20) {
	case 0:
		time.AfterFunc(time.Duration(random.IntN(20))*time.Millisecond, cancel)
	case 1:
		s.engine.Prefix(s.engine.TokenizeChat(s.requests[i].Messages), "")
	case 2, 3, 4:
		score, err := s.engine.Score(ctx, s.requests[i], s.scored, nil)
		if err != nil || !slices.Equal(score.LogProbs, s.scores[i]) {
			t.Errorf("scores of request %d are not those alone; error %v", i, err)
		}
	}
	enough := errors.New("enough")
	response, err := s.engine.Generate(ctx, s.requests[i], func(string) error {
		if patience--; patience == 0 && random.IntN(2) == 0 {
			cancel()
		} else if patience == 0 {
			return enough
		}
		return nil
	})
	switch {
	case err == nil:
		s.ended.Add(1)
		if response.Text != s.answers[i] {
			t.Errorf("request %d: answer %q, alone %q", i, response.Text, s.answers[i])
		}
	case errors.Is(err, context.Canceled) || errors.Is(err, enough):
		s.cancelled.Add(1)
	default:
		t.Error(err)
	}
	if stats := s.engine.Stats(); stats.UsedBlocks+stats.CachedBlocks > stats.Blocks || response.Usage.CachedTokens < 0 {
		t.Errorf("%+v, usage %+v", stats, response.Usage)
	}
}
