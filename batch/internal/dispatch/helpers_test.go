package dispatch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/batch/internal/dispatch"
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
)

// fake is an engine without a model: it takes as long as script says, and answers with what script returns.
type fake struct {
	script func(ctx context.Context, req engines.Request, n int, piece func()) (engines.Response, error)

	mu     sync.Mutex
	asked  []string    // guarded by mu: texts of the last messages, in the order in which the calls began
	began  []time.Time // guarded by mu: when they did
	flying int         // guarded by mu
	most   int         // guarded by mu: calls in flight at a time
}

func (f *fake) Name() string { return "fake" }

func (f *fake) Subscribe(func(...contextpilot.Event)) func() { return func() {} }

func (f *fake) Generate(ctx context.Context, req engines.Request, onText func(string) error) (engines.Response, error) {
	f.mu.Lock()
	n := len(f.asked)
	f.asked, f.began = append(f.asked, last(req)), append(f.began, time.Now())
	f.flying++
	f.most = max(f.most, f.flying)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.flying--
		f.mu.Unlock()
	}()
	return f.script(ctx, req, n, func() { _ = onText("a") })
}

func (f *fake) texts() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.asked...)
}

// since returns when the calls began, counted from a moment, in order.
func (f *fake) since(start time.Time) []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]time.Duration, len(f.began))
	for i, at := range f.began {
		out[i] = at.Sub(start)
	}
	return out
}

func last(req engines.Request) string { return req.Messages[len(req.Messages)-1].Content }

// wait waits in the fake's time.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// takes answers every request after d, and begins the answer after half of that.
func takes(d time.Duration) *fake {
	return &fake{script: func(ctx context.Context, req engines.Request, _ int, piece func()) (engines.Response, error) {
		if err := wait(ctx, d/2); err != nil {
			return engines.Response{}, err
		}
		piece()
		if err := wait(ctx, d/2); err != nil {
			return engines.Response{}, fmt.Errorf("%w: %w", engines.ErrInterrupted, err)
		}
		return answer(req), nil
	}}
}

// answer is a short answer with usage.
func answer(req engines.Request) engines.Response {
	return engines.Response{
		Text: "to " + last(req), Finish: "stop", Usage: engines.Usage{PromptTokens: 100, OutputTokens: 10, CachedKnown: true},
	}
}

// calls makes a call of each text.
func calls(texts ...string) []dispatch.Call {
	out := make([]dispatch.Call, len(texts))
	for i, text := range texts {
		out[i] = dispatch.Call{Seq: i, Request: engines.Request{Messages: []engines.Message{{Role: engines.User, Content: text}}}}
	}
	return out
}

// numbered makes calls that share nothing.
func numbered(n int) []dispatch.Call {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("%d: question", i)
	}
	return calls(texts...)
}

// store keeps answers, and fails the test when one comes twice.
type store struct {
	t       testing.TB
	mu      sync.Mutex
	answers map[int]dispatch.Answer // guarded by mu
}

func newStore(t testing.TB) *store { return &store{t: t, answers: map[int]dispatch.Answer{}} }

func (s *store) add(_ context.Context, a dispatch.Answer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, twice := s.answers[a.Seq]; twice {
		s.t.Errorf("request %d is answered twice: %+v and %+v", a.Seq, old, a)
	}
	s.answers[a.Seq] = a
	return nil
}

// failed returns the answers that are failures.
func (s *store) failed() map[int]dispatch.Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[int]dispatch.Failure{}
	for i, a := range s.answers {
		if a.Failure != (dispatch.Failure{}) {
			out[i] = a.Failure
		}
	}
	return out
}

func (s *store) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.answers)
}

func newDispatcher(t testing.TB, c dispatch.Config, all ...engines.Engine) *dispatch.Dispatcher {
	t.Helper()
	for i, e := range all {
		c.Replicas = append(c.Replicas, dispatch.Replica{Name: fmt.Sprintf("r%d", i), Engine: e})
	}
	d, err := dispatch.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
