package server_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/enginetest"
	"github.com/ragpilot/ragpilot/engines/kvevents/publish"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/vllm"
	"github.com/ragpilot/ragpilot/internal/lab/doctor"
)

// noEnd keeps a random model from ending its answer at once.
var noEnd = map[string]json.RawMessage{"ignore_eos": json.RawMessage("true")}

// The clients for remote engines find what they expect.
func TestConformance(t *testing.T) {
	t.Run("openai", func(t *testing.T) {
		enginetest.Run(t, func(t *testing.T) engines.Engine {
			engine, err := openai.New(openai.Config{BaseURL: start(t, nil).http.URL, Model: "tiny", Extra: noEnd})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = engine.Close() })
			return engine
		})
	})
	t.Run("vllm", func(t *testing.T) {
		enginetest.Run(t, func(t *testing.T) engines.Engine { return client(t, start(t, nil), "") })
	})
}

func client(t testing.TB, r *rig, tenant string) *vllm.Engine {
	t.Helper()
	engine, err := vllm.New(vllm.Config{
		Server:       openai.Config{BaseURL: r.http.URL, Extra: noEnd, Scope: contextpilot.Scope{Tenant: tenant}},
		PromptTokens: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	return engine
}

var loopback = publish.Config{Endpoint: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0", Topic: "kv@test@tiny"}

// The client for vLLM learns everything that it can learn of a server.
func TestVLLMClient(t *testing.T) {
	r := start(t, func(s *settings) { s.events = &loopback })
	engine := client(t, r, "")
	f, err := engine.Detect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]vllm.Support{
		"salt": f.Salt, "prompt tokens": f.PromptTokens, "tokenizer": f.Tokenize, "event sources": f.EventSources, "reset": f.ResetCache,
		"metrics": f.Metrics, "prefix cache": f.PrefixCache,
	} {
		if !s.Has {
			t.Errorf("%s: %s", name, s)
		}
	}
	if f.Session.Has || f.Priority.Has { // what there is not
		t.Errorf("session %s, priority %s", f.Session, f.Priority)
	}
	if f.BlockSize != 16 || f.Window != r.engine.Context() || f.Blocks != r.engine.Stats().Blocks || f.Version != "test" ||
		!slices.Equal(f.Models, []string{"tiny"}) ||
		time.Since(f.Started) > time.Hour {
		t.Errorf("%+v", f)
	}
	sources, err := engine.EventSources(t.Context())
	if at := r.publisher.Config(); err != nil || len(sources) != 1 || sources[0].Endpoint != at.Endpoint || sources[0].Replay != at.Replay ||
		sources[0].Topic != at.Topic {
		t.Errorf("%+v, %v", sources, err)
	}
	req := engines.Request{
		ID:        "ID with-odd_characters.1:2/3",
		MaxTokens: 4,
		Messages:  []engines.Message{{Role: engines.User, Content: strings.Repeat("Tides and boats. ", 20)}},
	}
	chat := func(tenant string) vllm.Response {
		t.Helper()
		response, err := engine.Chat(t.Context(), vllm.Request{Request: req, Tenant: tenant}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	cold, warm, other := chat(""), chat(""), chat("blue")
	n := len(cold.PromptTokens)
	if cold.Usage.CachedTokens != 0 || warm.Usage.CachedTokens != (n-1)/16*16 || other.Usage.CachedTokens != 0 ||
		cold.Usage.PromptTokens != n {
		t.Errorf("%d tokens; cached %d, %d, of another tenant %d", n, cold.Usage.CachedTokens, warm.Usage.CachedTokens, other.Usage.CachedTokens)
	}
	tokens, err := engine.TokenizeChat(t.Context(), req.Messages)
	if err != nil || !slices.Equal(tokens, cold.PromptTokens) {
		t.Errorf("%v of the tokenizer, %v of the answer: %v", tokens, cold.PromptTokens, err)
	}
	if f := engine.Features(); !f.RequestID.Has || !f.CachedTokens.Has || !f.PromptTokens.Has {
		t.Errorf("%+v", f)
	}
	m, err := engine.Metrics(t.Context())
	if err != nil || m.Hits != int64(warm.Usage.CachedTokens) || m.Queries != int64(3*n) || m.Prompt != int64(3*n) || m.Generated != 12 ||
		m.Cached != m.Hits {
		t.Errorf("%+v, %v", m, err)
	}
	if err := engine.ResetCache(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again := chat(""); again.Usage.CachedTokens != 0 {
		t.Errorf("%d tokens cached after a reset", again.Usage.CachedTokens)
	}
}

// The doctor takes it for a well set up server.
func TestDoctor(t *testing.T) {
	r := start(t, func(s *settings) { s.events = &loopback })
	report, err := doctor.Run(t.Context(), doctor.Config{Engine: r.http.URL, ProbeTokens: 200})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	_ = report.Print(&b)
	t.Log(b.String())
	if report.Kind != doctor.VLLM || report.Count(doctor.Problem) > 0 || report.Count(doctor.Warning) > 0 {
		t.Error("it is not well")
	}
}

// Metrics have vLLM's names.
func TestMetrics(t *testing.T) {
	r := start(t, nil)
	r.post(t, chatPath, `{`+ask+`}`)
	text := string(r.do(t, "GET", "/metrics", "").body)
	for _, name := range []string{
		"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "vllm:prefix_cache_queries_total",
		"vllm:prefix_cache_hits_total",
		"vllm:prompt_tokens_total", "vllm:generation_tokens_total", "vllm:num_preemptions_total", "vllm:time_to_first_token_seconds_bucket",
		"vllm:e2e_request_latency_seconds_count", "vllm:cache_config_info", "process_start_time_seconds",
	} {
		if !strings.Contains(text, "\n"+name) {
			t.Errorf("%s is missing", name)
		}
	}
	for _, line := range []string{
		`vllm:request_success_total{engine="0",finished_reason="length",model_name="tiny"} 1`,
		`vllm:time_to_first_token_seconds_count{engine="0",model_name="tiny"} 1`,
		`vllm:num_requests_running{engine="0",model_name="tiny"} 0`, `vllm:generation_tokens_total{engine="0",model_name="tiny"} 12`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s is missing in\n%s", line, text)
		}
	}
}
