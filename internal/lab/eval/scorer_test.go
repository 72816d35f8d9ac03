package eval_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/lab/eval"
)

// fakeEngine is an engine that notes what it was asked.
type fakeEngine struct {
	got engines.Request
	err error
}

func (*fakeEngine) Name() string { return "fake engine" }

func (f *fakeEngine) Generate(_ context.Context, req engines.Request, _ func(string) error) (engines.Response, error) {
	f.got = req
	return engines.Response{Text: "Oslo"}, f.err
}

func (*fakeEngine) Subscribe(func(...contextpilot.Event)) func() { return func() {} }

// TestFromEngine: an engine is asked greedily, and claims no likelihoods.
func TestFromEngine(t *testing.T) {
	fake := &fakeEngine{}
	s := eval.FromEngine(fake, "small")
	text, err := s.Generate(t.Context(), engines.Request{Messages: []engines.Message{{Role: engines.User, Content: "?"}}}, 7)
	if err != nil || text != "Oslo" || s.Name() != "fake engine, model small" || eval.FromEngine(fake, "").Name() != "fake engine" {
		t.Errorf("%q %q %v", s.Name(), text, err)
	}
	if r := fake.got; r.Model != "small" || r.MaxTokens != 7 || r.Temperature == nil || *r.Temperature != 0 || len(r.Messages) != 1 {
		t.Errorf("%+v", r)
	}
	if _, ok := s.(eval.LikelihoodScorer); ok {
		t.Error("it claims likelihoods")
	}
	fake.err = errors.New("down")
	if _, err := s.Generate(t.Context(), engines.Request{}, 1); !errors.Is(err, fake.err) || !strings.Contains(err.Error(), "fake engine") {
		t.Errorf("%v", err)
	}
}
