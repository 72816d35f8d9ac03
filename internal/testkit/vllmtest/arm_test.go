//go:build unix

package vllmtest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/follow"
	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/vllm"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

// arm is one way to send the requests. Each has a cache salt of its own: arms do not meet in the cache.
type arm struct {
	t        *testing.T
	name     string
	engine   *vllm.Engine
	pilot    *contextpilot.Pilot
	requests []contextpilot.Request
	batch    *contextpilot.Batch // nil: planned one by one
	took     []sample            // by request
}

// sample is what came of one request.
type sample struct {
	Sent     int           `json:"sent"` // place in the order of sending
	Plan     time.Duration `json:"plan_ns"`
	TTFT     time.Duration `json:"ttft_ns"`
	Prompt   int           `json:"prompt_tokens"`
	Cached   int           `json:"cached_tokens"`
	Expected int           `json:"expected_tokens"` // by the plan
	Reused   int           `json:"reused_blocks"`   // of the request's, which the plan expects in the cache
}

func (s sample) computed() int { return s.Prompt - s.Cached }

// newArm returns an arm of the policy, "" for the pilot's own.
func newArm(t *testing.T, s *server, name, policy string, requests []contextpilot.Request) *arm {
	t.Helper()
	a := &arm{t: t, name: name, took: make([]sample, len(requests))}
	scope := contextpilot.Scope{Tenant: name}
	var follower *follow.Follower
	a.engine = s.client(vllm.Config{Server: openai.Config{Scope: scope}, PromptTokens: true, OnPrompt: func(p vllm.Prompt) {
		follower.Prompt(p.RequestID, p.Tokens, residency.Key{Salt: p.Salt})
	}})
	var err error
	follower, err = follow.New(
		follow.Config{Source: kvevents.Source{Name: name, Endpoint: s.events(), Replay: s.replay(), Rank: kvevents.AnyRank}},
	)
	if err != nil {
		t.Fatal(err)
	}
	counter, err := a.engine.Tokenizer(openai.TokenizerConfig{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	a.pilot, err = contextpilot.New(contextpilot.Config{Policy: policy, BlockSize: a.engine.Features().BlockSize, Tokenizer: counter})
	if err != nil {
		t.Fatal(err)
	}
	a.engine.Subscribe(follower.Answered)
	a.engine.Subscribe(a.pilot.Sink(scope))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.engine.Follow(ctx, follower) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("arm %s: %v", name, err)
		}
	})
	head, err := a.engine.TokenizeChat(t.Context(), []engines.Message{{Role: engines.System, Content: trace.System}})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range requests {
		q.ID, q.Scope, q.HeadTokens = name+"-"+q.ID, scope, len(head)
		a.requests = append(a.requests, q)
	}
	return a
}

// together plans all requests as one batch.
func (a *arm) together() {
	a.t.Helper()
	began := time.Now()
	batch, err := a.pilot.PlanBatch(a.t.Context(), a.requests)
	if err != nil {
		a.t.Fatal(err)
	}
	a.batch = &batch
	a.t.Logf("%s: %d requests planned in %v, with counting their tokens", a.name, len(a.requests), time.Since(began).Round(time.Millisecond))
}

// send sends the request that is due in place i.
func (a *arm) send(i int) {
	a.t.Helper()
	s := sample{Sent: i}
	var plan contextpilot.Plan
	began := time.Now()
	if a.batch != nil {
		i = a.batch.Order[i]
		plan = a.batch.Plans[i]
	} else {
		plan = a.pilot.Plan(a.requests[i])
	}
	s.Plan = time.Since(began)
	if plan.Fault != nil {
		a.t.Fatal(plan.Fault)
	}
	zero := 0.0
	response, err := a.engine.Chat(a.t.Context(), vllm.Request{Request: engines.Request{
		ID: plan.RequestID, MaxTokens: 1, Temperature: &zero, Extra: map[string]json.RawMessage{"ignore_eos": json.RawMessage("true")},
		Messages: []engines.Message{
			{Role: engines.System, Content: trace.System},
			{Role: engines.User, Content: plan.Prompt(a.requests[i].Query)},
		},
	}}, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	if !response.Usage.CachedKnown {
		a.t.Fatal("an answer does not say how much was cached")
	}
	// An answer whose only token shows no text has no first piece: it is there when it is complete.
	s.TTFT = response.TTFT
	if s.TTFT == 0 {
		s.TTFT = response.Total
	}
	s.Prompt, s.Cached = response.Usage.PromptTokens, response.Usage.CachedTokens
	s.Expected, s.Reused = plan.Prefix.Tokens, plan.Prefix.Blocks
	a.took[i] = s
}

// mean returns the mean time to the first token in ms, and of the tokens computed, over some requests.
func (a *arm) mean(of []int) (ttft, computed float64) {
	for _, i := range of {
		ttft += a.took[i].TTFT.Seconds() * 1e3
		computed += float64(a.took[i].computed())
	}
	n := float64(max(len(of), 1))
	return ttft / n, computed / n
}
