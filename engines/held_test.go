package engines_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
)

// heldEngine holds every request until the test answers it, or its context ends.
type heldEngine struct {
	mu    sync.Mutex
	calls []*heldCall // guarded by mu; all, in the order of arrival
}

type heldCall struct {
	req    engines.Request
	ctx    context.Context // to see it end
	reply  chan error
	pieces int // of the answer

	answered, late bool // for the test's own books
}

func (*heldEngine) Name() string { return "fake: answers when it is let go" }

func (*heldEngine) Subscribe(func(...contextpilot.Event)) (cancel func()) { return func() {} }

func (e *heldEngine) Generate(ctx context.Context, req engines.Request, onText func(string) error) (engines.Response, error) {
	c := &heldCall{req: req, ctx: ctx, reply: make(chan error, 1), pieces: 1}
	e.mu.Lock()
	e.calls = append(e.calls, c)
	e.mu.Unlock()
	resp := engines.Response{ID: req.ID}
	select {
	case <-ctx.Done():
		return resp, ctx.Err()
	case err := <-c.reply:
		if errors.Is(err, errEngine) {
			panic("the engine's fault")
		}
		if err != nil {
			return resp, err
		}
	}
	for range c.pieces {
		if err := onText("x"); err != nil {
			return resp, fmt.Errorf("%w: %w", engines.ErrInterrupted, err)
		}
	}
	resp.Usage = engines.Usage{PromptTokens: 100, CachedTokens: 30, OutputTokens: c.pieces, CachedKnown: true}
	return resp, nil
}

var errEngine = errors.New("panic")

// seen waits until nothing moves and returns the requests that have arrived.
func (e *heldEngine) seen(t *testing.T, want int) []*heldCall {
	t.Helper()
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.calls) != want {
		t.Fatalf("the engine got %d requests, not %d", len(e.calls), want)
	}
	return slices.Clone(e.calls)
}

// wanted reports whether a request has neither been answered nor given up.
func (c *heldCall) wanted() bool { return c.ctx.Err() == nil }

const (
	manual = "manual: " // of the head, see warmUp.build
	how    = "How often is the boiler cleaned?"
)

// warmUp is a warmer with its fake engine.
type warmUp struct {
	*engines.Warmer
	t      *testing.T
	engine *heldEngine
	pilot  *contextpilot.Pilot
	system string
}

// testWarmer runs f with a warmer in a bubble of virtual time; it ends with no goroutine left.
func testWarmer(t *testing.T, o engines.WarmerOptions, f func(t *testing.T, w *warmUp)) {
	synctest.Test(t, func(t *testing.T) {
		pilot, err := contextpilot.New(contextpilot.Config{})
		if err != nil {
			t.Fatal(err)
		}
		engine := &heldEngine{}
		o.Engine, o.Pilot = engine, pilot
		w, err := engines.NewWarmer(o)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		f(t, &warmUp{Warmer: w, t: t, engine: engine, pilot: pilot, system: strings.Repeat("Answer from the documents. ", 20)})
	})
}

// build makes a chat with the system prompt, and one message with blocks and question.
func (w *warmUp) build(p *contextpilot.Plan) engines.Request {
	return engines.Request{ID: p.RequestID, MaxTokens: 300, Messages: []engines.Message{
		{Role: engines.System, Content: w.system}, {Role: engines.User, Content: manual + p.Prompt(how)},
	}}
}

func (w *warmUp) begin(req contextpilot.Request) *engines.Warming {
	return w.Begin(w.t.Context(), req, w.build)
}

// real plans a request and says that it is ready.
func (w *warmUp) real(x *engines.Warming, names ...string) contextpilot.Plan {
	plan := w.pilot.Plan(contextpilot.Request{Query: how, Blocks: pages(names...)})
	x.Ready(&plan)
	return plan
}

func (w *warmUp) served(plan *contextpilot.Plan) {
	w.pilot.Observe(contextpilot.Event{Kind: contextpilot.Served, Scope: plan.Scope, Request: plan.RequestID})
}

func (w *warmUp) live(want int64) {
	w.t.Helper()
	synctest.Wait()
	if got := w.pilot.Stats().LiveRequests; got != want {
		w.t.Errorf("%d requests in the index, not %d", got, want)
	}
}

func (w *warmUp) stats(want engines.WarmerStats) {
	w.t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, w.Stats()); diff != "" {
		w.t.Errorf("stats (-want +got):\n%s", diff)
	}
}

// pages returns blocks of 100 tokens each.
func pages(names ...string) []contextpilot.Block {
	var out []contextpilot.Block
	for _, name := range names {
		out = append(out, contextpilot.Block{ID: name, Text: "All about " + name + ".", Tokens: 100})
	}
	return out
}

// shown returns the blocks of a request's last message, in prompt order.
func blocksOf(req engines.Request) string {
	var names []string
	text := req.Messages[len(req.Messages)-1].Content
	for _, part := range strings.Split(text, "<doc ")[1:] {
		name, _, _ := strings.Cut(part, ">")
		names = append(names, name)
	}
	return strings.Join(names, " ")
}
