package local_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/engines/local/internal/modeltest"
	"github.com/ragpilot/ragpilot/engines/local/internal/weights"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// A score is the logarithm of softmax of what the formulas give, and the same bits whatever the cache has.
func TestScore(t *testing.T) {
	path := tiny(t)
	e := open(t, 100, local.Config{Model: path, Step: 32})
	req := ask("", text(1, 80), 0)
	const answer = "the answer of the engine, and something more so that it is longer than what one step scores"
	first, err := e.Score(t.Context(), req, answer, nil)
	if err != nil {
		t.Fatal(err)
	}
	file, err := weights.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	prompt := e.TokenizeChat(req.Messages)
	model, err := llama.New(file, gpu.CPU{})
	if err != nil {
		t.Fatal(err)
	}
	tokens, sum := slices.Concat(prompt, first.Tokens), 0.0
	pages := modeltest.Pages(t, model, len(tokens))
	logits := modeltest.NewWorker(t, model, 1).Forward([]llama.Span{{Tokens: tokens, Pages: pages, Logits: len(tokens)}})
	for i, token := range first.Tokens {
		total := 0.0
		row := logits[(len(prompt)+i-1)*model.Vocab:][:model.Vocab]
		for _, v := range row {
			total += math.Exp(float64(v))
		}
		want := float64(row[token]) - math.Log(total)
		if sum += want; math.Abs(first.LogProbs[i]-want) > 2e-4 {
			t.Errorf("token %d: logarithm of the probability %g, want %g", i, first.LogProbs[i], want)
		}
	}
	if n := float64(len(first.Tokens)); len(first.LogProbs) != len(first.Tokens) || n < 33 || math.Abs(first.NLL()+sum/n) > 1e-4 {
		t.Errorf("mean %g, want %g, of %d tokens", first.NLL(), -sum/n, len(first.Tokens))
	}
	if e.Detokenize(first.Tokens) != answer {
		t.Errorf("tokens of %q", e.Detokenize(first.Tokens))
	}
	generate(t, e, ask("", text(1, 80), 60))
	calls := 0
	second, err := e.Score(t.Context(), req, answer, func(i int, logits []float32) {
		if i != calls || local.LogProb(logits, first.Tokens[i]) != first.LogProbs[i] {
			t.Errorf("call %d has logits of token %d", calls, i)
		}
		calls++
		e.Stats() // which is allowed here
	})
	if err != nil || !slices.Equal(first.LogProbs, second.LogProbs) || calls != len(first.Tokens) {
		t.Errorf("the second time %v, then %v, error %v, %d calls", first, second, err, calls)
	}
	if first.Cached != 0 || second.Cached != (len(prompt)-1)/16*16 {
		t.Errorf("%d and %d tokens of %d were cached", first.Cached, second.Cached, len(prompt))
	}
}

// Scoring what the model has answered: its own answer is the most probable, token by token.
func TestScoreOfItsOwnAnswer(t *testing.T) {
	e := open(t, 100, local.Config{})
	req := ask("", text(4, 80), 30)
	answer := generate(t, e, req)
	_, err := e.Score(t.Context(), req, answer.Text, func(_ int, logits []float32) {
		if n := len(logits); n != 320 {
			t.Errorf("%d logits", n)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func TestScorePreempted(t *testing.T) {
	path := tiny(t)
	answer := text(9, 120)
	want, err := open(t, 100, local.Config{Model: path}).Score(t.Context(), ask("", text(8, 60), 0), answer, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := open(t, 21, local.Config{Model: path, Step: 4})
	for round := 0; round == 0 || round < 20 && e.Stats().Preemptions == 0; round++ { // the requests may come one after the other
		var wait sync.WaitGroup
		for i := range 3 {
			wait.Go(func() { generate(t, e, ask("", text(i, 30), 200)) })
		}
		for range 8 {
			wait.Go(func() {
				calls := 0
				got, err := e.Score(context.Background(), ask("", text(8, 60), 0), answer, func(i int, _ []float32) {
					if i != calls {
						t.Errorf("token %d is reported at call %d", i, calls)
					}
					calls++
				})
				if err != nil || !slices.Equal(got.LogProbs, want.LogProbs) {
					t.Errorf("scores differ: error %v", err)
				}
			})
		}
		wait.Wait()
	}
	if s := e.Stats(); s.Preemptions == 0 {
		t.Errorf("nothing was preempted: %+v", s)
	}
	idle(t, e)
}

func TestScoreEnds(t *testing.T) {
	e := open(t, 60, local.Config{Step: 8})
	ctx, cancel := context.WithCancel(t.Context())
	returned := false
	_, err := e.Score(ctx, ask("", "hello", 0), text(1, 200), func(int, []float32) {
		if returned {
			t.Error("called after Score has returned")
		}
		cancel()
	})
	returned = true
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	idle(t, e)
	func() {
		defer func() {
			if got := recover(); got != "mine" {
				t.Errorf("recovered %v", got)
			}
		}()
		_, _ = e.Score(t.Context(), ask("", "hello", 0), text(1, 200), func(int, []float32) { panic("mine") })
	}()
	idle(t, e)
	var served []contextpilot.Event
	defer e.Subscribe(func(events ...contextpilot.Event) { served = append(served, events...) })()
	score, err := e.Score(t.Context(), ask("scored", "hello", 0), "you", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(served) != 1 || served[0].Request != "scored" || served[0].Kind != contextpilot.Served || served[0].Output != len(score.Tokens) {
		t.Errorf("events %+v", served)
	}
}
