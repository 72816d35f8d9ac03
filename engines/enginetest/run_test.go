package enginetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
)

// fakeEngine answers with the words of the last message. Its faults are what the suite has to find.
type fakeEngine struct {
	fault string

	mu       sync.Mutex
	requests int
	last     string // the last answer of any request, for the fault "mixes"
	sinks    map[int]func(...contextpilot.Event)
}

func (f *fakeEngine) Name() string {
	if f.fault == "no name" {
		return ""
	}
	return "fake"
}

func (f *fakeEngine) Subscribe(sink func(...contextpilot.Event)) (cancel func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sinks == nil {
		f.sinks = map[int]func(...contextpilot.Event){}
	}
	n := len(f.sinks)
	f.sinks[n] = sink
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.fault != "subscription never ends" {
			delete(f.sinks, n)
		}
	}
}

func (f *fakeEngine) Generate(ctx context.Context, req engines.Request, onText func(string) error) (engines.Response, error) {
	f.mu.Lock()
	f.requests++
	fallback := fmt.Sprint("fake-", f.requests)
	text := req.Messages[len(req.Messages)-1].Content
	if f.fault == "mixes" && f.last != "" && strings.HasPrefix(req.ID, "together-") {
		text = f.last
	}
	f.last = text
	f.mu.Unlock()

	r := engines.Response{ID: cmp.Or(req.ID, fallback), Finish: "stop", TTFT: time.Millisecond, Total: time.Second}
	if f.fault == "loses ID" {
		r.ID = fallback
	}
	if onText == nil {
		if f.fault == "needs a callback" {
			return r, errors.New("no callback")
		}
		onText = func(string) error { return nil }
	}
	if f.fault != "ignores cancellation" && ctx.Err() != nil {
		return r, ctx.Err()
	}
	words := strings.SplitAfter(text, " ")
	for i, word := range words {
		r.Text += word
		err := onText(word)
		if f.fault == "repeats a piece" && i == 1 {
			err = onText(word)
		}
		if err != nil && f.fault != "ignores the callback" {
			if f.fault == "hides the callback's error" {
				err = errors.New("stopped")
			}
			if f.fault == "serves stopped requests" {
				f.serve(r)
			}
			return r, err
		}
		if err := ctx.Err(); err != nil && f.fault != "ignores cancellation" {
			return r, fmt.Errorf("%w: %w", engines.ErrInterrupted, err)
		}
	}
	r.Usage = engines.Usage{PromptTokens: 20, OutputTokens: len(words), CachedTokens: 10, CachedKnown: true}
	switch f.fault {
	case "counts too much":
		r.Usage.CachedTokens = 30
	case "times":
		r.Total = 0
	case "changes text":
		r.Text = strings.TrimSpace(r.Text) + "."
	}
	f.serve(r)
	return r, nil
}

func (f *fakeEngine) serve(r engines.Response) {
	e := contextpilot.Event{Kind: contextpilot.Served, Request: r.ID, Tokens: r.Usage.CachedTokens, Output: r.Usage.OutputTokens}
	switch f.fault {
	case "serves another ID":
		e.Request = "chatcmpl-" + r.ID
	case "serves other numbers":
		e.Tokens = 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, sink := range f.sinks {
		sink(e)
		if f.fault == "serves twice" {
			sink(e)
		}
	}
}

func TestRun(t *testing.T) {
	Run(t, func(*testing.T) engines.Engine { return &fakeEngine{} })
}

// TestFindsFaults proves that every check can fail.
func TestFindsFaults(t *testing.T) {
	cases := []struct{ fault, foundBy string }{
		{"no name", "Name"},
		{"repeats a piece", "PiecesMakeText"},
		{"changes text", "PiecesMakeText"},
		{"needs a callback", "NilCallback"},
		{"loses ID", "RequestID"},
		{"counts too much", "Usage"},
		{"times", "Times"},
		{"ignores the callback", "CallbackErrorStops"},
		{"hides the callback's error", "CallbackErrorStops"},
		{"ignores cancellation", "CancelledBefore"},
		{"ignores cancellation", "CancelledDuring"},
		{"mixes", "Concurrent"},
		{"serves another ID", "ServedEvent"},
		{"serves other numbers", "ServedEvent"},
		{"serves twice", "ServedEvent"},
		{"serves stopped requests", "ServedOnlyWhenComplete"},
		{"subscription never ends", "SubscriptionEnds"},
		{"serves twice", "SeveralSubscribers"},
	}
	tried := map[string]bool{}
	for _, c := range cases {
		tried[c.foundBy] = true
		t.Run(c.fault, func(t *testing.T) {
			for _, check := range checks() {
				if check.name == c.foundBy && !fails(t, check, &fakeEngine{fault: c.fault}) {
					t.Errorf("%s passes an engine that %s", check.name, c.fault)
				}
			}
		})
	}
	for _, check := range checks() {
		if !tried[check.name] {
			t.Errorf("no fault is tried on %s", check.name)
		}
	}
}

// silent is a testing.TB that keeps failures to itself.
type silent struct {
	testing.TB
	mu     sync.Mutex
	failed bool // guarded by mu
}

func (s *silent) Error(...any)          { s.fail() }
func (s *silent) Errorf(string, ...any) { s.fail() }

func (s *silent) Fatalf(string, ...any) {
	s.fail()
	runtime.Goexit()
}

func (s *silent) Failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

func (s *silent) fail() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = true
}

func fails(t *testing.T, c check, e engines.Engine) bool {
	s := &silent{TB: t}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	done := make(chan struct{})
	go func() { // Fatalf ends the goroutine
		defer close(done)
		c.run(ctx, s, e)
	}()
	<-done
	return s.Failed()
}
