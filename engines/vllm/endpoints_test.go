package vllm_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/vllm"
)

func TestMetrics(t *testing.T) {
	got, err := start(t, &fake{metrics: metrics}, nil).Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := vllm.Metrics{
		Queries: 1000, Hits: 608, Cached: 608, Prompt: 1000, Usage: 0.5, Running: 3, Waiting: 4,
		PrefixCaching: "True", BlockSize: 32, Blocks: 64, Started: got.Started,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if at := got.Started.UTC().Truncate(time.Second).Format(time.RFC3339); at != "2026-11-21T20:27:34Z" {
		t.Errorf("started %s", at)
	}
	if got.HitRatio() != 0.608 || (vllm.Metrics{}).HitRatio() != 0 {
		t.Errorf("hit ratio %v", got.HitRatio())
	}

	old, err := start(t, &fake{metrics: oldMetrics}, nil).Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(vllm.Metrics{Queries: 10, Hits: 5, Usage: 0.5, PrefixCaching: "False", BlockSize: 16}, old); diff != "" {
		t.Errorf("old names: %s", diff)
	}
	if _, err := start(t, &fake{}, nil).Metrics(t.Context()); !errors.Is(err, vllm.ErrNotOffered) {
		t.Errorf("no metrics: %v", err)
	}
}

func TestEventSources(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		want         []vllm.EventSource
		fails        bool
	}{
		{"all addresses", sources, []vllm.EventSource{{
			Endpoint: "tcp://127.0.0.1:5557", Replay: "tcp://127.0.0.1:5558", Topic: "kv@pod@tiny", BufferSteps: 10000,
		}}, false},
		{
			"as seen on 0.32.0, on one machine", `{"0":{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"ipc:///run/kv-8123","replay_endpoint":"tcp://127.0.0.1:5558","buffer_steps":10000,"hwm":100000,"max_queue_size":100000,"topic":"kv"}}`,
			[]vllm.EventSource{{Endpoint: "ipc:///run/kv-8123", Replay: "tcp://127.0.0.1:5558", Topic: "kv", BufferSteps: 10000, Local: true}},
			false,
		},
		{
			"an address that the engine may dial", `{"0":{"publisher":"zmq","endpoint":"tcp://10.0.0.9:5557","replay_endpoint":null}}`,
			[]vllm.EventSource{{Endpoint: "tcp://10.0.0.9:5557", MayDial: true}},
			false,
		},
		{
			"ranks in order", `{"10":{"publisher":"zmq","endpoint":"tcp://*:10"},"2":{"publisher":"zmq","endpoint":"tcp://*:2"}}`,
			[]vllm.EventSource{{Rank: 2, Endpoint: "tcp://127.0.0.1:2"}, {Rank: 10, Endpoint: "tcp://127.0.0.1:10"}},
			false,
		},
		{"none", `{}`, nil, false},
		{"no publisher", `{"0":{"publisher":"null","endpoint":"tcp://*:5557"}}`, nil, false},
		{"no ranks", `{"a":{}}`, nil, true},
		{"nonsense", `[`, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := start(t, &fake{sources: c.answer}, nil).EventSources(t.Context())
			if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != c.fails {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
	if _, err := start(t, &fake{}, nil).EventSources(t.Context()); !errors.Is(err, vllm.ErrNotOffered) {
		t.Errorf("a release without it: %v", err)
	}
}

func TestTokenize(t *testing.T) {
	engine := start(t, &fake{}, nil)
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
}
