package vllm_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/vllm"
)

func detected(t *testing.T, f *fake, change func(*vllm.Config)) *vllm.Engine {
	t.Helper()
	engine := start(t, f, change)
	if _, err := engine.Detect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return engine
}

func TestMembers(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*vllm.Config)
		req    vllm.Request
		want   map[string]string // "" is not there
	}{
		{"nothing asked for", nil, vllm.Request{}, map[string]string{"cache_salt": "", "session_id": "", "priority": "", "return_token_ids": ""}},
		{"sessions are off", nil, vllm.Request{Session: "s"}, map[string]string{"session_id": ""}},
		{"session", func(c *vllm.Config) { c.Sessions = true }, vllm.Request{Session: "s"}, map[string]string{"session_id": `"s"`}},
		{"tenant", nil, vllm.Request{Tenant: "team-a"}, map[string]string{"cache_salt": `"team-a"`}},
		{"tenant that is no salt", nil, vllm.Request{Tenant: "a@b/c"}, map[string]string{"cache_salt": `"` + vllm.Salt("a@b/c") + `"`}},
		{"tenant of the scope", func(c *vllm.Config) { c.Server.Scope.Tenant = "b" }, vllm.Request{}, map[string]string{"cache_salt": `"b"`}},
		{"shared by all", func(c *vllm.Config) { c.Salt = func(string) string { return "" } }, vllm.Request{Tenant: "a"}, map[string]string{"cache_salt": ""}},
		{
			"the caller's members win", func(c *vllm.Config) {
				c.Server.Extra = map[string]json.RawMessage{"cache_salt": json.RawMessage(`"x"`), "seed": json.RawMessage("1")}
			},
			vllm.Request{Tenant: "a", Request: engines.Request{Extra: map[string]json.RawMessage{"seed": json.RawMessage("2")}}},
			map[string]string{"cache_salt": `"x"`, "seed": "2"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{version: `{"version":"0.32.0"}`, schema: schema}
			engine := detected(t, f, c.change)
			c.req.Messages = question("").Messages
			if _, err := engine.Chat(t.Context(), c.req, nil); err != nil {
				t.Fatal(err)
			}
			for name, want := range c.want {
				if got := string(f.last(t).body[name]); got != want {
					t.Errorf("%s is %s, want %s", name, got, want)
				}
			}
		})
	}
}

// TestPromptTokens: the tokens come with the answer, are those of the tokenizer, and are told to OnPrompt once.
func TestPromptTokens(t *testing.T) {
	f := &fake{version: `{"version":"0.32.0"}`, details: true}
	var mu sync.Mutex
	var told []vllm.Prompt
	scope := contextpilot.Scope{Model: "tiny", Tenant: "team"}
	engine := detected(t, f, func(c *vllm.Config) {
		c.PromptTokens, c.Server.Scope = true, scope
		c.OnPrompt = func(p vllm.Prompt) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, p)
		}
	})
	var first string
	response, err := engine.Chat(t.Context(), vllm.Request{Request: question("req-a")}, func(piece string) error {
		if first == "" {
			first = piece
			mu.Lock()
			defer mu.Unlock()
			if len(told) != 1 {
				t.Error("the text came before the prompt")
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want, err := engine.TokenizeChat(t.Context(), question("").Messages)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, response.PromptTokens); diff != "" {
		t.Errorf("(-tokenizer +answer):\n%s", diff)
	}
	if diff := cmp.Diff([]vllm.Prompt{{Scope: scope, RequestID: "req-a", Salt: "team", Tokens: want}}, told); diff != "" {
		t.Errorf("OnPrompt (-want +got):\n%s", diff)
	}
}

// TestMembersOfTheRequest: a request that does not want the tokens says nothing of the server, and one with a salt of its own is
// told with that.
func TestMembersOfTheRequest(t *testing.T) {
	f := &fake{version: `{"version":"0.32.0"}`, details: true}
	var told []vllm.Prompt // by one goroutine at a time
	engine := detected(t, f, func(c *vllm.Config) {
		c.PromptTokens, c.Server.Scope = true, contextpilot.Scope{Tenant: "team"}
		c.OnPrompt = func(p vllm.Prompt) { told = append(told, p) }
	})
	for id, extra := range map[string]string{"": "", "none": `{"return_token_ids":false}`, "salted": `{"cache_salt":"own"}`, "strange": `{"cache_salt":7}`} {
		q := question(id)
		if extra != "" {
			if err := json.Unmarshal([]byte(extra), &q.Extra); err != nil {
				t.Fatal(err)
			}
		}
		told = nil
		if _, err := engine.Chat(t.Context(), vllm.Request{Request: q}, nil); err != nil {
			t.Fatal(err)
		}
		var salts []string
		for _, p := range told {
			salts = append(salts, p.Salt)
		}
		if want := map[string][]string{"": {"team"}, "salted": {"own"}}[id]; !slices.Equal(salts, want) {
			t.Errorf("%q: told with salts %q, want %q", id, salts, want)
		}
		if !engine.Features().PromptTokens.Has {
			t.Fatalf("%q: %+v", id, engine.Features().PromptTokens)
		}
	}
}

// TestBrokenAnswer: an error is the error of the chat, and teaches nothing.
func TestBrokenAnswer(t *testing.T) {
	engine := detected(t, &fake{version: `{"version":"0.32.0"}`, details: true}, nil)
	enough := errors.New("enough")
	response, err := engine.Chat(t.Context(), vllm.Request{Request: question("a")}, func(string) error { return enough })
	if !errors.Is(err, enough) || !errors.Is(err, engines.ErrInterrupted) || response.ID != "a" {
		t.Errorf("%v, %+v", err, response)
	}
	if engine.Features().CachedTokens.Known {
		t.Error("a broken answer told something")
	}
}

// recorded are the events of a subscription.
func recorded(engine engines.Engine) (events func() []contextpilot.Event, cancel func()) {
	var mu sync.Mutex
	var got []contextpilot.Event
	cancel = engine.Subscribe(func(e ...contextpilot.Event) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, e...)
	})
	return func() []contextpilot.Event {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(got)
	}, cancel
}

func TestResetCache(t *testing.T) {
	scope := contextpilot.Scope{Replica: "r1"}
	for _, c := range []struct {
		name, answer string
		want         error
		cleared      int
	}{
		{"done", `{"success":true}`, nil, 1},
		{"older releases say nothing", " ", nil, 1},
		{"in use", `{"success":false}`, vllm.ErrBusy, 0},
		{"no development mode", "", vllm.ErrNotOffered, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			engine := start(t, &fake{reset: c.answer}, func(c *vllm.Config) { c.Server.Scope = scope })
			events, cancel := recorded(engine)
			defer cancel()
			err := engine.ResetCache(t.Context())
			if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			got := events()
			if len(got) != c.cleared {
				t.Fatalf("%d events", len(got))
			}
			if c.cleared > 0 && (got[0].Kind != contextpilot.Cleared || got[0].Scope != scope) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// lines is a source of events that are given.
type lines []contextpilot.Event

func (l lines) Run(ctx context.Context, sink func(events ...contextpilot.Event)) error {
	for _, event := range l {
		sink(event)
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestFollow: events of a source reach the subscribers with the engine's scope, until the context ends.
func TestFollow(t *testing.T) {
	scope := contextpilot.Scope{Model: "m", Replica: "r"}
	engine := start(t, &fake{}, func(c *vllm.Config) { c.Server.Scope = scope })
	ctx, stop := context.WithCancel(t.Context())
	var got []contextpilot.Event
	source := lines{{Kind: contextpilot.Shrunk, Request: "a", Tokens: 32}, {Kind: contextpilot.Gone, Request: "b"}}
	defer engine.Subscribe(func(e ...contextpilot.Event) {
		if got = append(got, e...); len(got) == len(source) {
			stop()
		}
	})()
	if err := engine.Follow(ctx, source); !errors.Is(err, context.Canceled) {
		t.Errorf("Follow ended with %v", err)
	}
	want := []contextpilot.Event{{Kind: contextpilot.Shrunk, Scope: scope, Request: "a", Tokens: 32}, {Kind: contextpilot.Gone, Scope: scope, Request: "b"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if source[0].Scope != (contextpilot.Scope{}) {
		t.Error("the source's events were changed")
	}
}

func TestNewRefuses(t *testing.T) {
	for want, config := range map[string]vllm.Config{
		"BaseURL":  {},
		"Patience": {Server: openai.Config{BaseURL: "http://h"}, Patience: -1},
		"IDs":      {Server: openai.Config{BaseURL: "http://h", IDs: 128}},
	} {
		if _, err := vllm.New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	engine, err := vllm.New(vllm.Config{Server: openai.Config{BaseURL: "http://u:secret@h:8000"}})
	if err != nil || engine.Name() != "vllm:http://u:xxxxx@h:8000" {
		t.Errorf("%v, %v", engine.Name(), err)
	}
}

// TestTogether: chats, questions and detections at the same time, for the race detector.
func TestTogether(t *testing.T) {
	f := &fake{version: `{"version":"0.32.0"}`, schema: schema, sources: sources, metrics: metrics, details: true}
	engine := detected(t, f, func(c *vllm.Config) { c.PromptTokens = true })
	_, cancel := recorded(engine)
	defer cancel()
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if _, err := engine.Chat(t.Context(), vllm.Request{Request: question("")}, nil); err != nil {
				t.Error(err)
			}
			if _, err := engine.Detect(t.Context()); err != nil {
				t.Error(err)
			}
			engine.Features().Models[0] = "mine"
		})
	}
	wait.Wait()
	if got := engine.Features(); !got.CachedTokens.Has || got.Models[0] != "tiny" {
		t.Errorf("%+v", got)
	}
}
