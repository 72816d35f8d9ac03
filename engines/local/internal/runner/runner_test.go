package runner_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/engines/local/internal/modeltest"
	"github.com/ragpilot/ragpilot/engines/local/internal/runner"
	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newModel returns a small model, always the same one.
func newModel(t testing.TB) *llama.Model {
	t.Helper()
	_, m := modeltest.Tiny(t, tinymodel.Options{Seed: 1})
	return m
}

func newRunner(t testing.TB, config runner.Config) *runner.Runner {
	t.Helper()
	config.Model = newModel(t)
	config.Threads = max(config.Threads, 1)
	r, err := runner.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// prompt is different for each seed, from its first token on.
func prompt(seed, length int) []int32 {
	tokens := make([]int32, length)
	for i := range tokens {
		tokens[i] = int32((seed + 7*i) % 320)
	}
	return tokens
}

var greedy = modeltest.Greedy

// all returns everything that a run generates.
func all(t testing.TB, x *runner.Run) []int32 {
	t.Helper()
	var tokens []int32
	for {
		more, done, err := x.Next(context.Background())
		if err != nil {
			t.Error(err)
		}
		tokens = append(tokens, more...)
		if done {
			return tokens
		}
	}
}

func TestNextAfterTheEnd(t *testing.T) {
	r := newRunner(t, runner.Config{Pages: 10, Running: 2, Step: 32})
	x := r.Submit(runner.Request{Prompt: prompt(1, 20), Max: 5, Sample: greedy})
	x.Wait()
	if result := x.Result(); result != (runner.Result{Finish: "length"}) {
		t.Errorf("%+v", result)
	}
	x.Cancel(errors.New("too late"))
	for range 2 {
		if tokens, done, err := x.Next(t.Context()); len(tokens) > 0 || !done || err != nil {
			t.Errorf("%v, %v, %v", tokens, done, err)
		}
	}
}

// A long prompt holds up no answer: between two of its parts, all that generate get a token.
func TestPromptsInParts(t *testing.T) {
	r := newRunner(t, runner.Config{Pages: 100, Running: 4, Step: 16})
	began := make(chan bool, 1)
	tokens := 0
	short := r.Submit(runner.Request{Prompt: prompt(1, 5), Max: 100, Sample: func(logits []float32) int32 {
		if tokens++; tokens == 3 {
			began <- true
			<-began
		}
		return greedy(logits)
	}})
	<-began
	before := 0
	long := r.Submit(runner.Request{Prompt: prompt(2, 400), Max: 1, Sample: func(logits []float32) int32 {
		before = tokens
		return greedy(logits)
	}})
	began <- true
	all(t, long)
	all(t, short)
	if before < 3+400/16 {
		t.Errorf("%d tokens were generated beside a prompt of 400 tokens in parts of 16", before)
	}
}

// Prompts that are computed together share the tokens of a step.
func TestPromptsShareTheStep(t *testing.T) {
	r := newRunner(t, runner.Config{Pages: 100, Running: 4, Step: 16})
	var runs []*runner.Run
	for seed := range 4 {
		runs = append(runs, r.Submit(runner.Request{Prompt: prompt(100*seed, 160), Max: 1, Sample: greedy}))
	}
	for _, x := range runs {
		all(t, x)
	}
	if s := r.Stats(); s.Steps < 4*160/16 {
		t.Errorf("%d prompt tokens in %d steps of at most 16", 4*160, s.Steps)
	}
}

// A run that others push out goes on where it was: nothing is drawn or reported twice.
func TestPreempted(t *testing.T) {
	r := newRunner(t, runner.Config{Pages: 14, Running: 8, Step: 64})
	var runs []*runner.Run
	calls := make([]int, 8)
	for i := range calls {
		runs = append(runs, r.Submit(runner.Request{Prompt: prompt(50*i, 20), Max: 60 + i, Sample: func(logits []float32) int32 {
			calls[i]++
			return greedy(logits)
		}}))
	}
	for i, x := range runs {
		if got := len(all(t, x)); got != 60+i || calls[i] != got {
			t.Errorf("run %d: %d tokens in %d calls", i, got, calls[i])
		}
	}
	if s := r.Stats(); s.Preemptions == 0 || s.Used != 0 || s.Generated != int64(8*60+28) {
		t.Errorf("%+v", s)
	}
}

// A run that is scored and pushed out in the middle reports each logit once, and what was cached when it began first.
func TestPreemptedScore(t *testing.T) {
	forced := prompt(7, 80)
	var want, got [][]float32
	request := func(rows *[][]float32) runner.Request {
		return runner.Request{
			Prompt:   prompt(3, 20),
			Forced:   forced,
			OnLogits: func(logits []float32) { *rows = append(*rows, slices.Clone(logits)) },
		}
	}
	newRunner(t, runner.Config{Pages: 20, Running: 2, Step: 64}).Submit(request(&want)).Wait()

	// The first needs its fourth page when the second has computed about 75 of 100 tokens, and there is none.
	r := newRunner(t, runner.Config{Pages: 10, Running: 2, Step: 2})
	first := r.Submit(runner.Request{Prompt: prompt(1, 10), Max: 100, Sample: greedy})
	second := r.Submit(request(&got))
	first.Wait()
	second.Wait()
	if s := r.Stats(); s.Preemptions != 1 || second.Result().Cached != 0 {
		t.Errorf("%+v, result %+v", s, second.Result())
	}
	if len(want) != 81 || !slices.EqualFunc(got, want, slices.Equal[[]float32]) {
		t.Errorf("%d rows of logits, want %d, or others", len(got), len(want))
	}
}

// Stop tokens end an answer and are not part of it.
func TestStopTokens(t *testing.T) {
	r := newRunner(t, runner.Config{Pages: 10, Running: 2, Step: 32})
	n := int32(0)
	count := func([]float32) int32 { n++; return n }
	x := r.Submit(runner.Request{Prompt: prompt(1, 20), Max: 50, Stop: []int32{9, 4}, Sample: count})
	if got := all(t, x); !slices.Equal(got, []int32{1, 2, 3}) || x.Result().Finish != "stop" {
		t.Errorf("%v, %+v", got, x.Result())
	}
}

// Events of the cache after Clear begin with that of Clear, without any request.
func TestClear(t *testing.T) {
	events := make(chan kvevents.Event, 100)
	r := newRunner(t, runner.Config{Pages: 10, Running: 2, Step: 32, OnEvents: func(all []kvevents.Event) {
		for _, e := range all {
			events <- e
		}
	}})
	all(t, r.Submit(runner.Request{Prompt: prompt(1, 32), Max: 1, Sample: greedy}))
	r.Clear()
	for _, want := range []kvevents.Kind{kvevents.Stored, kvevents.Stored, kvevents.Cleared} {
		if e := <-events; e.Kind != want {
			t.Errorf("%v, want %v", e.Kind, want)
		}
	}
	if n := r.Prefix(prompt(1, 32), ""); n != 0 {
		t.Errorf("%d tokens after Clear", n)
	}
}

// One request more while 10,000 wait, that is cancelled, or comes to its turn.
func BenchmarkQueue(b *testing.B) {
	for name, waiting := range map[string]int{"waiting=0": 0, "waiting=10000": 10_000} {
		b.Run(name, func(b *testing.B) {
			r := newRunner(b, runner.Config{Pages: 100, Running: 1, Step: 64})
			hold := make(chan bool)
			first := r.Submit(runner.Request{Prompt: prompt(1, 5), Max: 1, Sample: func([]float32) int32 { <-hold; return 3 }})
			request := runner.Request{Prompt: prompt(2, 20), Max: 1, Sample: greedy}
			runs := make([]*runner.Run, waiting)
			for i := range runs {
				runs[i] = r.Submit(request)
			}
			b.ReportAllocs()
			for b.Loop() {
				r.Submit(request).Cancel(context.Canceled)
			}
			close(hold)
			first.Wait()
			for _, x := range runs {
				x.Wait()
			}
		})
	}
}

// A run that waits for what another computes, since both have the same prompt, holds up none behind it.
func TestSamePromptDoesNotDelayOthers(t *testing.T) {
	r := newRunner(t, runner.Config{Pages: 100, Running: 4, Step: 128})
	began, submitted := make(chan bool), make(chan bool)
	first := r.Submit(runner.Request{Prompt: prompt(1, 5), Max: 1, Sample: func(logits []float32) int32 {
		close(began)
		<-submitted
		return greedy(logits)
	}})
	<-began
	var order []string // of the loop
	submit := func(name string, seed int) *runner.Run {
		return r.Submit(runner.Request{Prompt: prompt(seed, 40), Max: 1, Sample: func(logits []float32) int32 {
			order = append(order, name)
			return greedy(logits)
		}})
	}
	runs := []*runner.Run{first, submit("one", 2), submit("same", 2), submit("other", 3)}
	close(submitted)
	for _, x := range runs {
		all(t, x)
	}
	if want := []string{"one", "other", "same"}; !slices.Equal(order, want) || runs[2].Result().Cached == 0 {
		t.Errorf("answered in order %v, want %v; %d tokens of the same prompt were not computed again", order, want, runs[2].Result().Cached)
	}
}
