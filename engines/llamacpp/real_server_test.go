package llamacpp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/enginetest"
	"github.com/ragpilot/ragpilot/engines/llamacpp"
	"github.com/ragpilot/ragpilot/engines/openai"
)

func TestRealConformance(t *testing.T) {
	s := startServer(t, "--parallel", "2")
	enginetest.Run(t, func(*testing.T) engines.Engine {
		engine, _ := s.engine(func(c *llamacpp.Config) {
			// A model with random weights would end some answers before the second piece.
			c.Server.Extra = map[string]json.RawMessage{"ignore_eos": json.RawMessage("true")}
		})
		return engine
	})
}

// Many requests at once wait for the slots; each finds what was predicted when it got one.
func TestRealParallel(t *testing.T) {
	s := startServer(t, "--parallel", "3", "--cache-ram", "0")
	engine, l := s.engine(nil)
	const users, turns = 12, 8
	var wait sync.WaitGroup
	for user := range users {
		wait.Go(func() {
			k := newTalk(uint64(user), 1)
			for turn := range turns {
				req, chat := k.next()
				req.ID = fmt.Sprintf("u%d-%d", user, turn)
				response, err := engine.Generate(t.Context(), req, nil)
				if err != nil {
					t.Errorf("%s: %v", req.ID, err)
					return
				}
				k.answered(chat, response.Text)
				if p := l.of(req.ID); !p.Exact || p.Cached != response.Usage.CachedTokens {
					t.Errorf("%s: predicted %+v, usage %+v", req.ID, p, response.Usage)
				}
			}
		})
	}
	wait.Wait()
	if stats := engine.Stats(); stats.Equal != users*turns {
		t.Errorf("stats %+v", stats)
	}
	if got := l.count(contextpilot.Served); got != users*turns {
		t.Errorf("%d Served events", got)
	}
	for i, slot := range engine.Slots() {
		if slot.Busy || slot.Tokens != slot.Length {
			t.Errorf("slot %d afterwards: %+v", i, slot)
		}
	}
}

// Answers that are broken off leave a lower bound at first, and the truth once the server's slots were looked at.
func TestRealCancelled(t *testing.T) {
	s := startServer(t, "--parallel", "2", "--cache-ram", "0")
	engine, l := s.engine(nil)
	k := newTalk(4, 3)
	for i := range 30 {
		req, chat := k.next()
		if i%2 == 0 {
			response := ask(t.Context(), t, engine, req)
			k.answered(chat, response.Text)
			if p := l.of(req.ID); p.Cached > response.Usage.CachedTokens {
				t.Errorf("%s: predicted %+v, usage %+v", req.ID, p, response.Usage)
			}
			continue
		}
		ctx, cancel := context.WithCancel(t.Context())
		req.MaxTokens = 500
		req.Extra = map[string]json.RawMessage{"ignore_eos": json.RawMessage("true")}
		pieces := 0
		_, err := engine.Generate(ctx, req, func(string) error {
			if pieces++; pieces == i {
				cancel()
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: error %v", req.ID, err)
		}
		cancel()
		k.chats[chat] = nil
	}
	if stats := engine.Stats(); stats.Below != 0 || stats.Equal == 0 || stats.Looks == 0 {
		t.Errorf("stats %+v", stats)
	}
}

// A request that the server refuses changes nothing, and the engine finds that out.
func TestRealRefused(t *testing.T) {
	s := startServer(t, "--parallel", "2", "--cache-ram", "0", "-c", "1024")
	engine, l := s.engine(nil)
	short := engines.Request{ID: "short", MaxTokens: 4, Messages: []engines.Message{{Role: engines.User, Content: passage(1)}}}
	ask(t.Context(), t, engine, short)
	long := engines.Request{ID: "long", Messages: []engines.Message{{Role: engines.User, Content: strings.Repeat(passage(1), 40)}}}
	_, err := engine.Generate(t.Context(), long, nil)
	if status, ok := errors.AsType[*openai.StatusError](err); !errors.Is(err, engines.ErrRefused) || !ok || status.Code != 400 {
		t.Fatalf("error %v", err)
	}
	short.ID = "again"
	response := ask(t.Context(), t, engine, short)
	if p := l.of("again"); !p.Exact || p.Cached != response.Usage.CachedTokens || p.Cached != p.Prompt-1 {
		t.Errorf("predicted %+v, usage %+v", p, response.Usage)
	}
}

// Another client's requests are noticed by the first answer that they spoil; what stays is right again.
func TestRealOtherClient(t *testing.T) {
	s := startServer(t, "--parallel", "1", "--cache-ram", "0")
	engine, l := s.engine(nil)
	req := engines.Request{ID: "mine", MaxTokens: 4, Messages: []engines.Message{{Role: engines.User, Content: passage(1)}}}
	ask(t.Context(), t, engine, req)
	s.post("/completion", `{"prompt":"something else","n_predict":2}`)
	req.ID = "spoilt"
	ask(t.Context(), t, engine, req)
	if stats := engine.Stats(); stats.Below != 1 {
		t.Errorf("after another client's request: stats %+v", stats)
	}
	req.ID = "right"
	response := ask(t.Context(), t, engine, req)
	if p := l.of("right"); !p.Exact || p.Cached != response.Usage.CachedTokens {
		t.Errorf("predicted %+v, usage %+v", p, response.Usage)
	}
}

// The server may choose the slots: by itself it chooses as the engine would.
func TestRealUnpinned(t *testing.T) {
	s := startServer(t, "--parallel", "4", "--cache-ram", "0")
	engine, l := s.engine(func(c *llamacpp.Config) { c.Unpinned = true })
	k := newTalk(5, 6)
	for range 60 {
		req, chat := k.next()
		response := ask(t.Context(), t, engine, req)
		k.answered(chat, response.Text)
		if p := l.of(req.ID); !p.Exact || p.Cached != response.Usage.CachedTokens {
			t.Errorf("%s: predicted %+v, usage %+v", req.ID, p, response.Usage)
		}
	}
}

// Members of the body that concern the cache.
func TestRealExtra(t *testing.T) {
	s := startServer(t, "--parallel", "3", "--cache-ram", "0")
	engine, l := s.engine(nil)
	req := engines.Request{ID: "0", MaxTokens: 4, Messages: []engines.Message{{Role: engines.User, Content: passage(1)}}}
	for i, step := range []struct {
		extra  string
		slot   int // -1: not known
		cached bool
	}{
		{`{}`, -1, false},
		{`{"id_slot":1}`, 1, false},
		{`{"id_slot":4}`, 1, true}, // the server counts on from the first slot
		{`{"id_slot":1,"cache_prompt":false}`, 1, false},
		{`{"n":2}`, -1, false},
		{`{"stream":false,"id_slot":0}`, 0, false},
		{`{"id_slot":0}`, 0, true},
	} {
		req.ID = fmt.Sprint(i)
		req.Extra = nil
		if err := json.Unmarshal([]byte(step.extra), &req.Extra); err != nil {
			t.Fatal(err)
		}
		response := ask(t.Context(), t, engine, req)
		p := l.of(req.ID)
		if p.Cached > response.Usage.CachedTokens || step.slot >= 0 && p.Slot != step.slot || step.cached != (p.Cached > 0) {
			t.Errorf("%s: predicted %+v, usage %+v", step.extra, p, response.Usage)
		}
	}
	if stats := engine.Stats(); stats.Below != 0 {
		t.Errorf("stats %+v", stats)
	}
}

// What the server says of itself.
func TestRealInfo(t *testing.T) {
	s := startServer(t, "--parallel", "2", "--alias", "small")
	engine, _ := s.engine(nil)
	if err := engine.Health(t.Context()); err != nil {
		t.Error(err)
	}
	info, err := engine.Info(t.Context())
	if err != nil || info.Slots != 2 || info.ContextSlot != 4096 || info.Alias != "small" || info.Process == "" || !info.Metrics ||
		!info.SlotsVisible {
		t.Errorf("info %+v, error %v", info, err)
	}
	req := engines.Request{ID: "a", MaxTokens: 4, Messages: []engines.Message{{Role: engines.User, Content: passage(1)}}}
	first, second := ask(t.Context(), t, engine, req), ask(t.Context(), t, engine, req)
	metrics, err := engine.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := metrics[llamacpp.PromptTokensCached]; got != float64(first.Usage.CachedTokens+second.Usage.CachedTokens) {
		t.Errorf("metrics say %v cached tokens, the answers %d and %d", got, first.Usage.CachedTokens, second.Usage.CachedTokens)
	}
	for _, name := range []string{llamacpp.PromptTokens, llamacpp.TokensPredicted, llamacpp.RequestsProcessing, llamacpp.RequestsDeferred} {
		if _, ok := metrics[name]; !ok {
			t.Errorf("no metric %s", name)
		}
	}
	s.stop()
	if err := engine.Health(t.Context()); !errors.Is(err, engines.ErrUnreachable) {
		t.Errorf("health of a stopped server: %v", err)
	}
}
