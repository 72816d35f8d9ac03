package selfhosted_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/internal/selfhosted"
	"github.com/ragpilot/ragpilot/engines/openai"
)

var (
	vllm   = kinds[0]
	sglang = kinds[1]
)

func TestMetrics(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  kind
		text  string
		ratio float64
		want  selfhosted.Metrics
	}{
		{"vllm", vllm, vllmMetrics, 0.608, selfhosted.Metrics{
			Queries: 1000, Hits: 608, Cached: 608, Prompt: 1000, Usage: 0.5, Running: 3, Waiting: 4,
			PrefixCaching: "True", BlockSize: 32, Blocks: 64, Started: time.Unix(1795292854, 440000057),
		}},
		{
			"vllm with old names", vllm, oldVLLMMetrics, 0.5,
			selfhosted.Metrics{Queries: 10, Hits: 5, Usage: 0.5, PrefixCaching: "False", BlockSize: 16},
		},
		{"sglang", sglang, sglangMetrics, 0.25, selfhosted.Metrics{
			Queries: 1000, Hits: 250, Prompt: 1000, Cached: 250, Generated: 30, Evicted: 128, LoadedUp: 64, HitRate: 0.5, Usage: 0.3,
			Available: 1000, Evictable: 500, Used: 70, HostUsed: 10, HostTotal: 2000, Running: 3, Waiting: 2,
		}},
	} {
		got, err := start(t, &fake{kind: c.kind, answers: map[string]string{"/metrics": c.text}}, nil).Metrics(t.Context())
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil || got.HitRatio() != c.ratio {
			t.Errorf("%s: hit ratio %v, %v\n%s", c.name, got.HitRatio(), err, diff)
		}
	}
	if (selfhosted.Metrics{}).HitRatio() != 0 {
		t.Error("a hit ratio of nothing")
	}
	eachKind(t, func(t *testing.T, k kind) {
		if _, err := start(t, &fake{kind: k}, nil).Metrics(t.Context()); !errors.Is(err, selfhosted.ErrNotOffered) {
			t.Errorf("no metrics: %v", err)
		}
	})
}

func TestEventSources(t *testing.T) {
	type sources = []selfhosted.EventSource
	for _, c := range []struct {
		name   string
		kind   kind
		answer string
		want   sources
		fails  bool
	}{
		{"all addresses", vllm, vllmSources, sources{{
			Endpoint: "tcp://127.0.0.1:5557", Replay: "tcp://127.0.0.1:5558", Topic: "kv@pod@tiny", BufferSteps: 10000,
		}}, false},
		{
			"as seen on 0.32.0, on one machine", vllm, `{"0":{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"ipc:///run/kv-8123",
			"replay_endpoint":"tcp://127.0.0.1:5558","buffer_steps":10000,"hwm":100000,"max_queue_size":100000,"topic":"kv"}}`,
			sources{{Endpoint: "ipc:///run/kv-8123", Replay: "tcp://127.0.0.1:5558", Topic: "kv", BufferSteps: 10000, Local: true}},
			false,
		},
		{
			"an address that the engine may dial", vllm, `{"0":{"publisher":"zmq","endpoint":"tcp://10.0.0.9:5557","replay_endpoint":null}}`,
			sources{{Endpoint: "tcp://10.0.0.9:5557", MayDial: true}},
			false,
		},
		{
			"ranks in order", vllm, `{"10":{"publisher":"zmq","endpoint":"tcp://*:10"},"2":{"publisher":"zmq","endpoint":"tcp://*:2"}}`,
			sources{{Rank: 2, Endpoint: "tcp://127.0.0.1:2"}, {Rank: 10, Endpoint: "tcp://127.0.0.1:10"}},
			false,
		},
		{"none", vllm, `{}`, nil, false},
		{"no publisher", vllm, `{"0":{"publisher":"null","endpoint":"tcp://*:5557"}}`, nil, false},
		{"no ranks", vllm, `{"a":{}}`, nil, true},
		{"nonsense", vllm, `[`, nil, true},

		{
			"two ranks on all addresses", sglang,
			`{"publisher":"zmq","endpoint_host":"*","endpoint_port_base":5557,"topic":"kv","block_size":64,"dp_size":2,"replay_endpoint_port_base":6557}`,
			sources{
				{Endpoint: "tcp://127.0.0.1:5557", Replay: "tcp://127.0.0.1:6557", Topic: "kv", BlockSize: 64},
				{Rank: 1, Endpoint: "tcp://127.0.0.1:5558", Replay: "tcp://127.0.0.1:6558", Topic: "kv", BlockSize: 64},
			},
			false,
		},
		{
			"a host of its own", sglang, `{"publisher":"zmq","endpoint_host":"10.0.0.9","endpoint_port_base":5557}`,
			sources{{Endpoint: "tcp://10.0.0.9:5557", MayDial: true}},
			false,
		},
		{
			"all addresses of both kinds", sglang, `{"publisher":"zmq","endpoint_host":"::","endpoint_port_base":1,"dp_size":1}`,
			sources{{Endpoint: "tcp://127.0.0.1:1"}},
			false,
		},
		{"none", sglang, `null`, nil, false},
		{"no publisher", sglang, `{"publisher":"null"}`, nil, false},
		{"no port", sglang, `{"publisher":"zmq"}`, nil, false},
		{"more ranks than can be", sglang, `{"publisher":"zmq","endpoint_port_base":1,"dp_size":1000000000}`, nil, true},
		{"nonsense", sglang, `7`, nil, true},
	} {
		t.Run(c.kind.name+" "+c.name, func(t *testing.T) {
			answers := map[string]string{"/kv_event_sources": c.answer, "/server_info": `{"kv_events":` + c.answer + `}`}
			got, err := start(t, &fake{kind: c.kind, answers: answers}, nil).EventSources(t.Context())
			if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != c.fails {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
	eachKind(t, func(t *testing.T, k kind) {
		if _, err := start(t, &fake{kind: k}, nil).EventSources(t.Context()); !errors.Is(err, selfhosted.ErrNotOffered) {
			t.Errorf("a release without it: %v", err)
		}
	})
}

func TestTokenize(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		engine := start(t, &fake{kind: k}, nil)
		got, err := engine.Tokenize(t.Context(), "When do boats leave?")
		if diff := cmp.Diff([]uint32{4, 2, 5, 6}, got); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
		counter, err := engine.Tokenizer(openai.TokenizerConfig{Timeout: soon})
		if err != nil || counter.Count("When do boats leave?") != 4 {
			t.Errorf("the counter: %v", err)
		}
		chat, err := engine.TokenizeChat(t.Context(), question("").Messages)
		if err != nil || len(chat) != 6 {
			t.Errorf("%d tokens of a chat with two marks, %v", len(chat), err)
		}
	})
}

func TestResetCache(t *testing.T) {
	scope := contextpilot.Scope{Replica: "r1"}
	for _, c := range []struct {
		name   string
		kind   kind
		status int
		answer string
		want   error
	}{
		{"done", vllm, 0, `{"success":true}`, nil},
		{"older releases say nothing", vllm, 0, " ", nil},
		{"in use", vllm, 0, `{"success":false}`, selfhosted.ErrBusy},
		{"no development mode", vllm, 0, "", selfhosted.ErrNotOffered},
		{"done", sglang, http.StatusOK, "Cache flushed.\n", nil},
		{"requests are running", sglang, http.StatusBadRequest, "no", selfhosted.ErrBusy},
		{"not there", sglang, 0, "", selfhosted.ErrNotOffered},
		{"not allowed", sglang, http.StatusForbidden, "no", engines.ErrRefused},
	} {
		t.Run(c.kind.name+" "+c.name, func(t *testing.T) {
			answers := map[string]string{"/reset_prefix_cache": c.answer, "/flush_cache": c.answer}
			engine := start(t, &fake{kind: c.kind, answers: answers, status: c.status}, func(c *selfhosted.Config) { c.Server.Scope = scope })
			var got, want []contextpilot.Event
			defer engine.Subscribe(func(e ...contextpilot.Event) { got = append(got, e...) })()
			err := engine.ResetCache(t.Context())
			if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if c.want == nil {
				want = []contextpilot.Event{{Kind: contextpilot.Cleared, Scope: scope}}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
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
	engine := start(t, &fake{kind: vllm}, func(c *selfhosted.Config) { c.Server.Scope = scope })
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
	want := []contextpilot.Event{
		{Kind: contextpilot.Shrunk, Scope: scope, Request: "a", Tokens: 32},
		{Kind: contextpilot.Gone, Scope: scope, Request: "b"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if source[0].Scope != (contextpilot.Scope{}) {
		t.Error("the source's events were changed")
	}
}
