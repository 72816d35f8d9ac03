package sglang_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/sglang"
)

// TestPlaces: the ID is where SGLang reads it and nowhere else, also for a request without one.
func TestPlaces(t *testing.T) {
	f := &fake{}
	engine := start(t, f, nil)
	for _, id := range []string{"req-a", ""} {
		response, err := engine.Generate(t.Context(), question(id), nil)
		if err != nil {
			t.Fatal(err)
		}
		sent := f.last(t)
		var member string
		_ = json.Unmarshal(sent.body["rid"], &member)
		if response.ID == "" || id != "" && response.ID != id || member != response.ID || sent.header.Get("X-Request-Id") != "" || sent.body["request_id"] != nil {
			t.Errorf("%q was answered as %q and sent as %q", id, response.ID, member)
		}
	}
}

// TestPromptTokens: SGLang does not stream with them, so the answer comes in one piece; without them it streams.
func TestPromptTokens(t *testing.T) {
	f := &fake{info: info, schema: schema, report: true}
	scope := contextpilot.Scope{Tenant: "team"}
	var told []sglang.Prompt
	engine := start(t, f, func(c *sglang.Config) {
		c.Server.Scope = scope
		c.OnPrompt = func(p sglang.Prompt) { told = append(told, p) }
	})
	if _, err := engine.Detect(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask := func(tokens bool) (sglang.Response, []string) {
		t.Helper()
		var pieces []string
		response, err := engine.Chat(t.Context(), sglang.Request{Request: question("req-a"), PromptTokens: tokens}, func(piece string) error {
			pieces = append(pieces, piece)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return response, pieces
	}
	whole, pieces := ask(true)
	if len(pieces) != 1 || pieces[0] != whole.Text || !whole.Usage.CachedKnown {
		t.Errorf("pieces %q of %q", pieces, whole.Text)
	}
	want, err := engine.TokenizeChat(t.Context(), question("").Messages)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, whole.PromptTokens); diff != "" {
		t.Errorf("(-tokenizer +answer):\n%s", diff)
	}
	streamed, pieces := ask(false)
	if len(pieces) < 2 || streamed.Text != whole.Text || streamed.PromptTokens != nil {
		t.Errorf("pieces %q of %q with tokens %v", pieces, streamed.Text, streamed.PromptTokens)
	}
	if diff := cmp.Diff([]sglang.Prompt{{Scope: scope, RequestID: "req-a", Salt: "team", Tokens: want}}, told); diff != "" {
		t.Errorf("OnPrompt (-want +got):\n%s", diff)
	}
}

func TestResetCache(t *testing.T) {
	scope := contextpilot.Scope{Replica: "r1"}
	for _, c := range []struct {
		name    string
		status  int
		want    error
		cleared int
	}{
		{"done", http.StatusOK, nil, 1},
		{"requests are running", http.StatusBadRequest, sglang.ErrBusy, 0},
		{"not there", 0, sglang.ErrNotOffered, 0},
		{"not allowed", http.StatusForbidden, engines.ErrRefused, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			engine := start(t, &fake{flush: c.status}, func(c *sglang.Config) { c.Server.Scope = scope })
			var got []contextpilot.Event
			defer engine.Subscribe(func(e ...contextpilot.Event) { got = append(got, e...) })()
			err := engine.ResetCache(t.Context())
			if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if len(got) != c.cleared || c.cleared > 0 && (got[0].Kind != contextpilot.Cleared || got[0].Scope != scope) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestEventSources(t *testing.T) {
	for _, c := range []struct {
		name, events string
		want         []sglang.EventSource
		fails        bool
	}{
		{
			"two ranks on all addresses", `{"publisher":"zmq","endpoint_host":"*","endpoint_port_base":5557,"topic":"kv","block_size":64,"dp_size":2,"replay_endpoint_port_base":6557}`,
			[]sglang.EventSource{
				{Endpoint: "tcp://127.0.0.1:5557", Replay: "tcp://127.0.0.1:6557", Topic: "kv", BlockSize: 64},
				{Rank: 1, Endpoint: "tcp://127.0.0.1:5558", Replay: "tcp://127.0.0.1:6558", Topic: "kv", BlockSize: 64},
			},
			false,
		},
		{
			"a host of its own", `{"publisher":"zmq","endpoint_host":"10.0.0.9","endpoint_port_base":5557}`,
			[]sglang.EventSource{{Endpoint: "tcp://10.0.0.9:5557", MayDial: true}},
			false,
		},
		{
			"all addresses of both kinds", `{"publisher":"zmq","endpoint_host":"::","endpoint_port_base":1,"dp_size":1}`,
			[]sglang.EventSource{{Endpoint: "tcp://127.0.0.1:1"}},
			false,
		},
		{"none", `null`, nil, false},
		{"no publisher", `{"publisher":"null"}`, nil, false},
		{"no port", `{"publisher":"zmq"}`, nil, false},
		{"more ranks than can be", `{"publisher":"zmq","endpoint_port_base":1,"dp_size":1000000000}`, nil, true},
		{"nonsense", `7`, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := start(t, &fake{info: `{"kv_events":` + c.events + `}`}, nil).EventSources(t.Context())
			if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != c.fails {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
	if _, err := start(t, &fake{}, nil).EventSources(t.Context()); !errors.Is(err, sglang.ErrNotOffered) {
		t.Errorf("a release without it: %v", err)
	}
}

func TestMetrics(t *testing.T) {
	got, err := start(t, &fake{metrics: metrics}, nil).Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := sglang.Metrics{
		Prompt: 1000, Cached: 250, Generated: 30, Evicted: 128, LoadedUp: 64, HitRate: 0.5, Usage: 0.3,
		Available: 1000, Evictable: 500, Used: 70, HostUsed: 10, HostTotal: 2000, Running: 3, Waiting: 2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got.HitRatio() != 0.25 || (sglang.Metrics{}).HitRatio() != 0 {
		t.Errorf("hit ratio %v", got.HitRatio())
	}
	if _, err := start(t, &fake{}, nil).Metrics(t.Context()); !errors.Is(err, sglang.ErrNotOffered) {
		t.Errorf("no metrics: %v", err)
	}
}

// lines is a source of events that are given.
type lines []contextpilot.Event

func (l lines) Run(_ context.Context, sink func(events ...contextpilot.Event)) error {
	sink(l...)
	return errors.New("that is all")
}

func TestFollow(t *testing.T) {
	scope := contextpilot.Scope{Model: "m", Replica: "r"}
	engine := start(t, &fake{}, func(c *sglang.Config) { c.Server.Scope = scope })
	var got []contextpilot.Event
	defer engine.Subscribe(func(e ...contextpilot.Event) { got = append(got, e...) })()
	err := engine.Follow(t.Context(), lines{{Kind: contextpilot.Shrunk, Request: "a", Tokens: 32}, {Kind: contextpilot.Cleared}})
	if err == nil || err.Error() != "that is all" || len(got) != 2 || got[0].Scope != scope || got[1].Scope != scope {
		t.Errorf("%v, %+v", err, got)
	}
}

func TestNewRefuses(t *testing.T) {
	for want, config := range map[string]sglang.Config{
		"BaseURL":  {},
		"Patience": {Server: openai.Config{BaseURL: "http://h"}, Patience: -1},
	} {
		if _, err := sglang.New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	engine, err := sglang.New(sglang.Config{Server: openai.Config{BaseURL: "http://u:secret@h:8000"}})
	if err != nil || engine.Name() != "sglang:http://u:xxxxx@h:8000" {
		t.Errorf("%v, %v", engine.Name(), err)
	}
	if sglang.Salt("a/b") == "a/b" || sglang.Salt("a") != "a" {
		t.Error("salts")
	}
}

func TestTokenize(t *testing.T) {
	engine := start(t, &fake{}, nil)
	got, err := engine.Tokenize(t.Context(), "When do boats leave?")
	if err != nil || !slices.Equal(got, []uint32{4, 2, 5, 6}) {
		t.Errorf("%v, %v", got, err)
	}
	counter, err := engine.Tokenizer(openai.TokenizerConfig{})
	if err != nil || counter.Count("When do boats leave?") == 0 {
		t.Errorf("the counter: %v", err)
	}
}

// TestTogether: chats and detections at the same time, for the race detector.
func TestTogether(t *testing.T) {
	engine := start(t, &fake{info: info, schema: schema, metrics: metrics, report: true}, nil)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if _, err := engine.Chat(t.Context(), sglang.Request{Request: question("")}, nil); err != nil {
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
