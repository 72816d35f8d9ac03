//go:build unix

package vllmtest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/follow"
	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/vllm"
)

// system is the message in front of every chat.
const system = "Answer from the documents below."

// lane is a pilot in front of a server, joined with it as a program would join them.
type lane struct {
	t        *testing.T
	server   *server
	engine   *vllm.Engine
	pilot    *contextpilot.Pilot
	follower *follow.Follower
	block    int // tokens of a cache block
	head     int // tokens in front of the first passage
	sent     int
	gate     gate
	delay    *delay
}

// queue is how many messages may wait for the index; few, so that a pause makes it overflow.
const queue = 8

// newLane joins a pilot with a server whose events come from the endpoint.
func newLane(t *testing.T, s *server, endpoint string) *lane {
	t.Helper()
	l := &lane{t: t, server: s, delay: newDelay()}
	l.gate.open = sync.NewCond(&l.gate.mu)
	l.engine = s.client(vllm.Config{PromptTokens: true, OnPrompt: func(p vllm.Prompt) {
		l.follower.Prompt(p.RequestID, p.Tokens, residency.Key{Salt: p.Salt})
		l.delay.prompt(p)
	}})
	started := func(ctx context.Context, _ kvevents.Publisher) (float64, error) {
		l.gate.pass() // whoever asks brings no message into the index meanwhile
		m, err := l.engine.Metrics(ctx)
		return float64(m.Started.UnixMilli()), err
	}
	var err error
	l.follower, err = follow.New(follow.Config{
		Source: kvevents.Source{Name: "r0", Endpoint: endpoint, Replay: s.replay(), Rank: kvevents.AnyRank},
		Events: kvevents.Config{
			Queue: queue, StartTime: started, MaxBackoff: time.Second,
			Probe: time.Second, Resync: time.Second,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l.block = l.engine.Features().BlockSize
	l.newPilot()
	// Served must come to the follower before what it makes of it comes to the pilot.
	l.engine.Subscribe(l.follower.Answered)
	l.engine.Subscribe(l.delay.answered)
	l.engine.Subscribe(l.observe)
	l.run("events", func(ctx context.Context) error { return l.engine.Follow(ctx, l.follower) })
	l.run("clock", l.delay.follow(t, s))
	return l
}

// run runs something until the test ends.
func (l *lane) run(what string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	l.t.Cleanup(func() {
		l.gate.shut(false)
		cancel()
		if err := <-ended; err != nil {
			l.t.Errorf("%s: %v", what, err)
		}
	})
}

func (l *lane) newPilot() {
	l.t.Helper()
	counter, err := l.engine.Tokenizer(openai.TokenizerConfig{Timeout: time.Minute})
	if err != nil {
		l.t.Fatal(err)
	}
	if l.pilot, err = contextpilot.New(contextpilot.Config{BlockSize: l.block, Tokenizer: counter}); err != nil {
		l.t.Fatal(err)
	}
	tokens, err := l.engine.TokenizeChat(l.t.Context(), []engines.Message{{Role: engines.System, Content: system}})
	if err != nil {
		l.t.Fatal(err)
	}
	l.head = len(tokens)
}

// observe is the pilot's sink.
func (l *lane) observe(events ...contextpilot.Event) {
	now := time.Now()
	for _, ev := range events {
		l.pilot.Observe(ev)
		l.delay.reached(ev, now)
	}
}

// outcome is what was predicted of a request and what the engine reported.
type outcome struct {
	Phase     string
	Complete  bool // the index said so when the request was sent
	Prompt    int  // tokens
	Predicted int  // tokens
	Cached    int  // tokens
}

// off is the error in tokens.
func (o outcome) off() int { return max(o.Predicted-o.Cached, o.Cached-o.Predicted) }

// ask plans a request, predicts and sends it.
func (l *lane) ask(phase string, from *questions) outcome {
	l.t.Helper()
	ctx := l.t.Context()
	blocks, question := from.next()
	l.sent++
	plan := l.pilot.Plan(contextpilot.Request{ID: fmt.Sprintf("req-%d", l.sent), Blocks: blocks, Query: question, HeadTokens: l.head})
	messages := []engines.Message{{Role: engines.System, Content: system}, {Role: engines.User, Content: plan.Prompt(question)}}
	tokens, err := l.engine.TokenizeChat(ctx, messages)
	if err != nil {
		l.t.Fatal(err)
	}
	o := outcome{Phase: phase, Prompt: len(tokens), Complete: l.complete()}
	// The last token of a prompt is computed in any case.
	o.Predicted = min(l.prefix(tokens), (len(tokens)-1)/l.block*l.block)
	response, err := l.engine.Chat(ctx, vllm.Request{Request: engines.Request{ID: plan.RequestID, Messages: messages, MaxTokens: 4}}, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	if !response.Usage.CachedKnown || response.Usage.PromptTokens != len(tokens) {
		l.t.Fatalf("usage %+v of a prompt of %d tokens", response.Usage, len(tokens))
	}
	o.Cached = response.Usage.CachedTokens
	return o
}

// prefix is what the index says is cached of a prompt, in tokens.
func (l *lane) prefix(tokens []uint32) int {
	ints := make([]int, len(tokens))
	for i, t := range tokens {
		ints[i] = int(t)
	}
	return l.follower.Caches().Prefix(ints, residency.Key{})
}

// complete reports whether the index says that it knows all of the cache.
func (l *lane) complete() bool {
	_, complete := l.follower.Resident("")
	return complete
}

// reset empties the server's cache, which its events report with the next request only.
func (l *lane) reset() {
	l.t.Helper()
	if err := l.engine.ResetCache(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
	l.follower.Caches().Clear(kvevents.Requested)
}

// others sends requests that the index does not learn of, as other users of the server would.
func (l *lane) others(n int) {
	l.t.Helper()
	engine := l.server.client(vllm.Config{})
	from := newQuestions("other", uint64(l.sent))
	for range n {
		blocks, question := from.next()
		var text strings.Builder
		for _, b := range blocks {
			text.WriteString(b.Text)
		}
		messages := []engines.Message{{Role: engines.User, Content: text.String() + question}}
		if _, err := engine.Generate(l.t.Context(), engines.Request{Messages: messages, MaxTokens: 2}, nil); err != nil {
			l.t.Fatal(err)
		}
	}
}

// until waits for something that takes a while.
func (l *lane) until(what string, ok func() bool) {
	l.t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			l.t.Fatalf("not so after a minute: %s; %+v", what, l.follower.Status())
		}
	}
}

func (l *lane) status() kvevents.Status {
	list := l.follower.Status()
	if len(list) == 0 {
		return kvevents.Status{}
	}
	return list[0]
}

// gate stops who passes while it is shut.
type gate struct {
	mu     sync.Mutex
	open   *sync.Cond
	closed bool
	held   int
}

func (g *gate) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.closed {
		g.held++
		g.open.Wait()
		g.held--
	}
}

func (g *gate) shut(yes bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = yes
	g.open.Broadcast()
}

func (g *gate) holds() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held > 0
}
