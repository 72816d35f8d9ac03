package llamacpp_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/llamacpp"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// burst is what came of requests that were sent at the same time.
type burst struct {
	prompts, computed int             // tokens
	unique            int             // of the prompts, what they share counted once
	first             []time.Duration // to the first token, in order
}

// p95 is the 95th percentile of the times to the first token.
func (b *burst) p95() time.Duration { return b.first[(95*len(b.first)+99)/100-1] }

// sendBurst sends n requests at once through a router, all of which begin with the same blocks that the server has never seen.
func sendBurst(t *testing.T, e *llamacpp.Engine, hold engines.HoldOptions, n, answer int) (burst, engines.HoldStats) {
	t.Helper()
	pilot := testkit.Must(contextpilot.New(contextpilot.Config{}))(t)
	router := testkit.Must(engines.NewRouter(engines.RouterOptions{Pilot: pilot, Hold: hold}))(t)
	if err := router.Add("llama", e); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i := range 57 {
		text.WriteString(passage(i))
	}
	shared := text.String()
	alone := testkit.Must(e.Predict(t.Context(), engines.Request{Messages: []engines.Message{{Role: engines.User, Content: shared}}}))(t)
	prefix := alone.Prompt // and the few tokens that end the message
	var b burst
	var mu sync.Mutex
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			build := func(p *contextpilot.Plan) engines.Request {
				return engines.Request{
					ID: p.RequestID, MaxTokens: answer, Extra: map[string]json.RawMessage{"ignore_eos": json.RawMessage("true")},
					Messages: []engines.Message{{Role: engines.User, Content: shared + fmt.Sprintf("%d. %s", i, passage(1000+i))}},
				}
			}
			start := time.Now()
			var first time.Duration
			resp, err := router.Do(t.Context(), contextpilot.Request{Query: fmt.Sprint("question ", i)}, build, func(string) error {
				if first == 0 {
					first = time.Since(start)
				}
				return nil
			})
			if err != nil || !resp.Usage.CachedKnown {
				t.Errorf("request %d: %+v, %v", i, resp.Usage, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			b.first = append(b.first, first)
			b.prompts += resp.Usage.PromptTokens
			b.computed += resp.Usage.PromptTokens - resp.Usage.CachedTokens
			b.unique += resp.Usage.PromptTokens - prefix
		})
	}
	wait.Wait()
	if t.Failed() {
		t.FailNow()
	}
	b.unique += prefix
	slices.Sort(b.first)
	return b, router.Replicas()[0].Hold
}

// Eight requests at once begin with the same 2,000 tokens: held back they compute them once, and the last is no later than without.
// Times are compared again if the machine was busy with something else.
func TestRealHeldBack(t *testing.T) {
	const n, answer, tries = 8, 16, 3
	for try := 1; ; try++ {
		var results [2]burst
		for i, hold := range []engines.HoldOptions{{Longest: -1}, {Longest: time.Minute}} {
			s := startServer(t, "--parallel", "4", "-c", "16384")
			engine, _ := s.engine(nil)
			b, stats := sendBurst(t, engine, hold, n, answer)
			s.stop()
			t.Logf("held back: %d; of %d prompt tokens %d computed, %.3f x the unique ones; TTFT p50 %v, p95 %v; waited %v, %d late",
				stats.Held, b.prompts, b.computed, float64(b.computed)/float64(b.unique), b.first[n/2], b.p95(), stats.Waited, stats.Late)
			results[i] = b
		}
		without, with := results[0], results[1]
		if float64(without.computed) < 2*float64(without.unique) {
			t.Errorf("without holding back %d tokens are computed of %d unique ones: the test shows nothing", without.computed, without.unique)
		}
		if ratio := float64(with.computed) / float64(with.unique); ratio > 1.1 {
			t.Errorf("computed %.3f x the unique tokens, want at most 1.1", ratio)
		}
		if with.p95() <= without.p95() || t.Failed() {
			return
		}
		if try == tries {
			t.Fatalf("p95 of TTFT %v, %v without", with.p95(), without.p95())
		}
	}
}
