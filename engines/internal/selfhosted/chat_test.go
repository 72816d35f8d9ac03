package selfhosted_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/internal/selfhosted"
	"github.com/ragpilot/ragpilot/engines/openai"
)

func TestMembers(t *testing.T) {
	raw := func(text string) json.RawMessage { return json.RawMessage(text) }
	for _, c := range []struct {
		name   string
		change func(*selfhosted.Config)
		req    selfhosted.Request
		want   map[string]string // "" is not there
	}{
		{
			"nothing asked for", nil,
			selfhosted.Request{},
			map[string]string{"cache_salt": "", "session_id": "", "priority": "", "return_token_ids": ""},
		},
		{"sessions are off", nil, selfhosted.Request{Session: "s"}, map[string]string{"session_id": ""}},
		{"session", func(c *selfhosted.Config) { c.Sessions = true }, selfhosted.Request{Session: "s"}, map[string]string{"session_id": `"s"`}},
		{"tenant", nil, selfhosted.Request{Tenant: "team-a"}, map[string]string{"cache_salt": `"team-a"`}},
		{"tenant that is no salt", nil, selfhosted.Request{Tenant: "a@b/c"}, map[string]string{"cache_salt": asJSON(selfhosted.Salt("a@b/c"))}},
		{
			"tenant of the scope", func(c *selfhosted.Config) { c.Server.Scope.Tenant = "b" },
			selfhosted.Request{},
			map[string]string{"cache_salt": `"b"`},
		},
		{
			"shared by all", func(c *selfhosted.Config) { c.Salt = func(string) string { return "" } },
			selfhosted.Request{Tenant: "a"},
			map[string]string{"cache_salt": ""},
		},
		{
			"the caller's members win", func(c *selfhosted.Config) {
				c.Server.Extra = map[string]json.RawMessage{"cache_salt": raw(`"x"`), "seed": raw("1")}
			},
			selfhosted.Request{Tenant: "a", Request: engines.Request{Extra: map[string]json.RawMessage{"seed": raw("2")}}},
			map[string]string{"cache_salt": `"x"`, "seed": "2"},
		},
	} {
		eachKind(t, func(t *testing.T, k kind) {
			f := &fake{kind: k, answers: k.answers}
			engine := detected(t, f, c.change)
			req := c.req
			req.Messages = question("").Messages
			if _, err := engine.Chat(t.Context(), req, nil); err != nil {
				t.Fatal(err)
			}
			for name, want := range c.want {
				if got := string(f.last(t).body[name]); got != want {
					t.Errorf("%s: %s is %s, want %s", c.name, name, got, want)
				}
			}
		})
	}
}

// TestPlaces: the ID is where the server reads it, also for a request without one, and a request's rid goes to SGLang alone.
func TestPlaces(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		f := &fake{kind: k}
		engine := start(t, f, nil)
		for _, id := range []string{"req-a", ""} {
			response, err := engine.Generate(t.Context(), question(id), nil)
			if err != nil {
				t.Fatal(err)
			}
			if response.ID == "" || id != "" && response.ID != id {
				t.Errorf("%q was answered as %q", id, response.ID)
			}
			sent := f.last(t)
			got := [3]string{sent.header.Get("X-Request-Id"), string(sent.body["request_id"]), string(sent.body["rid"])}
			want := [3]string{response.ID, asJSON(response.ID), ""}
			if k.sglang {
				want = [3]string{"", "", asJSON(response.ID)}
			}
			if got != want {
				t.Errorf("%q was sent as %q, want %q", id, got, want)
			}
		}
	})
}

// TestPromptTokens: the tokens come with the answer, are those of the tokenizer, and reach OnPrompt once, before the text.
// SGLang does not stream with them, so its answer comes in one piece; without them it streams.
func TestPromptTokens(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		scope := contextpilot.Scope{Model: "tiny", Tenant: "team"}
		var mu sync.Mutex
		var prompts []selfhosted.Prompt
		engine := detected(t, &fake{kind: k, answers: k.answers, counts: true}, func(c *selfhosted.Config) {
			c.Server.Scope = scope
			c.OnPrompt = func(p selfhosted.Prompt) {
				mu.Lock()
				defer mu.Unlock()
				prompts = append(prompts, p)
			}
		})
		ask := func(tokens bool) (response selfhosted.Response, pieces int) {
			t.Helper()
			response, err := engine.Chat(t.Context(), selfhosted.Request{Request: question("req-a"), PromptTokens: tokens}, func(string) error {
				pieces++
				mu.Lock()
				defer mu.Unlock()
				if len(prompts) != 1 {
					t.Error("the text came before the prompt")
				}
				return nil
			})
			if err != nil || response.Text != question("").Messages[0].Content {
				t.Fatalf("%q, %v", response.Text, err)
			}
			return response, pieces
		}
		with, pieces := ask(true)
		if (pieces == 1) != k.sglang || !with.Usage.CachedKnown {
			t.Errorf("%d pieces, usage %+v", pieces, with.Usage)
		}
		want, err := engine.TokenizeChat(t.Context(), question("").Messages)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, with.PromptTokens); diff != "" {
			t.Errorf("(-tokenizer +answer):\n%s", diff)
		}
		if without, pieces := ask(false); pieces < 2 || without.PromptTokens != nil {
			t.Errorf("%d pieces with tokens %v", pieces, without.PromptTokens)
		}
		if diff := cmp.Diff([]selfhosted.Prompt{{Scope: scope, RequestID: "req-a", Salt: "team", Tokens: want}}, prompts); diff != "" {
			t.Errorf("OnPrompt (-want +got):\n%s", diff)
		}
	})
}

// TestMembersOfTheRequest: a request that does not want the tokens says nothing of the server, and OnPrompt gets the request's
// own salt.
func TestMembersOfTheRequest(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		var prompts []selfhosted.Prompt // by one goroutine at a time
		engine := detected(t, &fake{kind: k, answers: k.answers, counts: true}, func(c *selfhosted.Config) {
			c.PromptTokens, c.Server.Scope = true, contextpilot.Scope{Tenant: "team"}
			c.OnPrompt = func(p selfhosted.Prompt) { prompts = append(prompts, p) }
		})
		for id, extra := range map[string]string{
			"": "", "none": `{"` + k.tokens + `":false}`, "salted": `{"cache_salt":"own"}`,
			"strange": `{"cache_salt":7}`,
		} {
			q := question(id)
			if extra != "" {
				if err := json.Unmarshal([]byte(extra), &q.Extra); err != nil {
					t.Fatal(err)
				}
			}
			prompts = nil
			if _, err := engine.Chat(t.Context(), selfhosted.Request{Request: q}, nil); err != nil {
				t.Fatal(err)
			}
			var salts []string
			for _, p := range prompts {
				salts = append(salts, p.Salt)
			}
			if want := map[string][]string{"": {"team"}, "salted": {"own"}}[id]; !slices.Equal(salts, want) {
				t.Errorf("%q: salts %q, want %q", id, salts, want)
			}
			if !engine.Features().PromptTokens.Has {
				t.Fatalf("%q: %+v", id, engine.Features().PromptTokens)
			}
		}
	})
}

// TestBrokenAnswer: an error is the error of the chat, and shows nothing of the server.
func TestBrokenAnswer(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		engine := start(t, &fake{kind: k, counts: true}, nil)
		enough := errors.New("enough")
		response, err := engine.Chat(t.Context(), selfhosted.Request{Request: question("a")}, func(string) error { return enough })
		if !errors.Is(err, enough) || !errors.Is(err, engines.ErrInterrupted) || response.ID != "a" {
			t.Errorf("%v, %+v", err, response)
		}
		if engine.Features().CachedTokens.Known {
			t.Error("a broken answer showed something")
		}
	})
}

func TestNewRefuses(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		for want, config := range map[string]selfhosted.Config{
			"BaseURL":  {},
			"Patience": {Server: openai.Config{BaseURL: "http://h"}, Patience: -1},
			"IDs":      {Server: openai.Config{BaseURL: "http://h", IDs: 128}},
		} {
			if _, err := selfhosted.New(k.dialect, config); err == nil || !strings.Contains(err.Error(), want) ||
				!strings.HasPrefix(err.Error(), k.name+": ") {
				t.Errorf("%s: %v", want, err)
			}
		}
		engine, err := selfhosted.New(k.dialect, selfhosted.Config{Server: openai.Config{BaseURL: "http://u:secret@h:8000"}})
		if err != nil || engine.Name() != k.name+":http://u:xxxxx@h:8000" {
			t.Errorf("%v, %v", engine.Name(), err)
		}
	})
}

// TestTogether: chats, questions and detections at the same time, for the race detector.
func TestTogether(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		engine := detected(t, &fake{kind: k, answers: k.answers, counts: true}, func(c *selfhosted.Config) { c.PromptTokens = true })
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				if _, err := engine.Chat(t.Context(), selfhosted.Request{Request: question("")}, nil); err != nil {
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
	})
}
