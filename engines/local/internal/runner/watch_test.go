package runner_test

import (
	"math"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/engines/local/internal/modeltest"
	"github.com/ragpilot/ragpilot/engines/local/internal/runner"
	"github.com/ragpilot/ragpilot/internal/nn/compute"
)

// TestWatch: what an answer's first tokens attend to is what the model says, beside others or not, and watching changes no logits, not
// even those of others.
func TestWatch(t *testing.T) {
	const looked, length = 20, 40
	tokens := prompt(3, 45)
	run := func(watched, beside bool) (logits [][]float32, answer []int32, sums []float32) {
		r := newRunner(t, runner.Config{Pages: 100, Running: 4, Step: 32})
		request := runner.Request{Prompt: tokens, Max: length, Sample: func(l []float32) int32 {
			logits = append(logits, slices.Clone(l))
			return greedy(l)
		}}
		if watched {
			for range newModel(t).Layers {
				request.Watch = append(request.Watch, compute.NewProbe(newModel(t).Shape(), looked))
			}
		}
		x := r.Submit(request)
		if beside {
			var others []*runner.Run
			for i := range 3 {
				others = append(others, r.Submit(runner.Request{Prompt: prompt(50+i, 300), Max: 20, Sample: greedy}))
			}
			for i, other := range others {
				if got := all(t, other); watched && !slices.Equal(got, alone(t, 50+i)) {
					t.Errorf("beside a watched run, run %d has other tokens", i)
				}
			}
		}
		answer = all(t, x)
		want := 0
		if watched {
			want = runner.Watched
		}
		if got := x.Result().Watched; got != want {
			t.Errorf("%d tokens were watched, want %d", got, want)
		}
		for _, p := range request.Watch {
			sums = append(sums, p.Sums...)
		}
		return logits, answer, sums
	}
	want, answer, _ := run(false, false)
	logits, _, sums := run(true, false)
	if !slices.EqualFunc(logits, want, slices.Equal) {
		t.Error("watching changes logits")
	}
	if _, got, again := run(true, true); !slices.Equal(got, answer) || !slices.Equal(again, sums) {
		t.Error("beside others another answer, or other sums")
	}
	m := newModel(t)
	pages := modeltest.Pages(t, m, len(tokens)+runner.Watched)
	worker, probes := modeltest.NewWorker(t, m, 1), make([]*compute.Probe, m.Layers)
	for i := range probes {
		probes[i] = compute.NewProbe(m.Shape(), looked)
	}
	worker.Forward([]llama.Span{{Tokens: tokens, Pages: pages}})
	worker.Forward([]llama.Span{{Tokens: answer[:runner.Watched], Position: len(tokens), Pages: pages, Probes: probes}})
	at := 0
	for layer, p := range probes {
		for i, x := range p.Sums {
			if math.Abs(float64(x-sums[at])) > 1e-4 {
				t.Fatalf("layer %d, %d: %g, want %g", layer, i, sums[at], x)
			}
			at++
		}
	}
}

// alone is what is generated behind one of the prompts when nothing else runs.
func alone(t *testing.T, seed int) []int32 {
	r := newRunner(t, runner.Config{Pages: 100, Running: 1, Step: 32})
	return all(t, r.Submit(runner.Request{Prompt: prompt(seed, 300), Max: 20, Sample: greedy}))
}

// TestWatchCached: a prompt that is in the cache up to its last token is not taken for a part of the answer.
func TestWatchCached(t *testing.T) {
	r, m := newRunner(t, runner.Config{Pages: 100, Running: 1, Step: 32}), newModel(t)
	run := func() (sums []float32, result runner.Result) {
		request := runner.Request{Prompt: prompt(3, 49), Max: 12, Sample: greedy}
		for range m.Layers {
			request.Watch = append(request.Watch, compute.NewProbe(m.Shape(), 16))
		}
		x := r.Submit(request)
		all(t, x)
		for _, p := range request.Watch {
			sums = append(sums, p.Sums...)
		}
		return sums, x.Result()
	}
	first, _ := run()
	if again, result := run(); !slices.Equal(again, first) || result.Cached != 48 || result.Watched != 11 {
		t.Errorf("other sums, and %+v", result)
	}
}

// TestWatchPreempted: what is computed once more is not counted twice.
func TestWatchPreempted(t *testing.T) {
	r := newRunner(t, runner.Config{Pages: 12, Running: 8, Step: 64})
	m := newModel(t)
	var runs []*runner.Run
	var watches [][]*compute.Probe
	for i := range 8 {
		watch := make([]*compute.Probe, m.Layers)
		for layer := range watch {
			watch[layer] = compute.NewProbe(m.Shape(), 16)
		}
		watches = append(watches, watch)
		runs = append(runs, r.Submit(runner.Request{Prompt: prompt(i, 17), Max: 60, Sample: greedy, Watch: watch}))
	}
	for i, x := range runs {
		all(t, x)
		watched, sum := x.Result().Watched, 0.0
		for _, s := range watches[i][0].Sums {
			sum += float64(s)
		}
		// A row's weights add up to 1 for each of the heads, and most are on the first tokens.
		if rows := float64(watched * m.Shape().Query); watched < 1 || watched > runner.Watched || sum > rows+1e-3 || sum < rows/8 {
			t.Errorf("run %d: %d tokens were watched, the sums add up to %g", i, watched, sum)
		}
	}
	if r.Stats().Preemptions == 0 {
		t.Error("none was preempted")
	}
}
