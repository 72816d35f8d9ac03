package vllm_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/enginetest"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/vllm"
)

// schema is what /openapi.json says of a chat, shortened.
const schema = `{"paths":{"/health":{},"/reset_prefix_cache":{}},"components":{"schemas":{"ChatCompletionRequest":{"properties":{
"session_id":{},"cache_salt":{},"return_token_ids":{},"priority":{},"request_id":{}}}}}}`

const sources = `{"0":{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5558",
"buffer_steps":10000,"hwm":100000,"max_queue_size":100000,"topic":"kv@pod@tiny"}}`

const metrics = `# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.79529285444e+09
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="tiny"} 2.0
vllm:num_requests_running{engine="1",model_name="tiny"} 1.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="tiny"} 4.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="tiny"} 0.5
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="tiny"} 640.0
vllm:prefix_cache_queries_total{engine="1",model_name="tiny"} 360.0
# TYPE vllm:prefix_cache_queries_created gauge
vllm:prefix_cache_queries_created{engine="0",model_name="tiny"} 1.7952929795266805e+09
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="tiny"} 608.0
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="tiny"} 1000.0
# TYPE vllm:prompt_tokens_cached_total counter
vllm:prompt_tokens_cached_total{engine="0",model_name="tiny"} 608.0
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{_block_size_resolved="True",block_size="32",enable_prefix_caching="True",engine="0",num_gpu_blocks="64"} 1.0
`

// oldMetrics has the names of early releases.
const oldMetrics = `# TYPE vllm:gpu_cache_usage_perc gauge
vllm:gpu_cache_usage_perc{engine="0",model_name="tiny"} 0.5
# TYPE vllm:gpu_prefix_cache_queries_total counter
vllm:gpu_prefix_cache_queries_total{engine="0",model_name="tiny"} 10.0
# TYPE vllm:gpu_prefix_cache_hits_total counter
vllm:gpu_prefix_cache_hits_total{engine="0",model_name="tiny"} 5.0
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",enable_prefix_caching="False",num_gpu_blocks="None"} 1.0
`

// TestFeatures: what is found out, of which servers, and what is sent to them then.
func TestFeatures(t *testing.T) {
	for _, c := range []struct {
		name string
		fake *fake
		want map[string]string // how a feature is known
		sent []string          // members of a chat that needs them all
	}{
		{
			"0.32.0, as it is", &fake{version: `{"version":"0.32.0"}`, schema: schema, sources: sources, metrics: metrics, reset: `{"success":true}`},
			map[string]string{
				"session": "yes (the server's schema", "salt": "yes (", "priority": "yes (", "tokens": "yes (", "sources": "yes (GET /kv_event_sources answers",
				"reset": "yes (", "tokenize": "yes (POST /tokenize answers", "metrics": "yes", "prefixes": "yes",
			},
			[]string{"cache_salt", "priority", "return_token_ids", "session_id"},
		},
		{
			"0.32.0 without its schema", &fake{version: `{"version":"0.32.0+cpu"}`},
			map[string]string{
				"session": "yes (version 0.32.0+cpu", "salt": "not known", "tokens": "yes (version 0.32.0+cpu", "sources": "no (GET /kv_event_sources is not there)",
				"reset": "not known", "metrics": "no (", "prefixes": "not known",
			},
			[]string{"cache_salt", "priority", "return_token_ids", "session_id"},
		},
		{
			"0.20.0", &fake{version: `{"version":"0.20.0"}`},
			map[string]string{"session": "not known (version 0.20.0, seen in 0.28.0)", "tokens": "yes (version"},
			[]string{"cache_salt", "priority", "return_token_ids"},
		},
		{
			"0.9.2", &fake{version: `{"version":"0.9.2"}`, metrics: oldMetrics},
			map[string]string{"session": "not known", "tokens": "no (version 0.9.2, there since 0.10.2)", "prefixes": "no ("},
			[]string{"cache_salt", "priority"},
		},
		{
			"a build without tags that has it all", &fake{version: `{"version":"0.1.dev1+g0123abc"}`, schema: schema},
			map[string]string{"session": "yes (the server's schema", "tokens": "yes (the server's schema"},
			[]string{"cache_salt", "priority", "return_token_ids", "session_id"},
		},
		{
			"a build without tags and schema", &fake{version: `{"version":"0.1.dev1+g0123abc"}`},
			map[string]string{"session": "not known", "tokens": `not known (version "0.1.dev1+g0123abc" says nothing)`},
			[]string{"cache_salt", "priority"},
		},
		{
			"a schema that says no beats the version", &fake{version: `{"version":"0.33.0"}`, schema: strings.ReplaceAll(schema, `"session_id":{},`, "")},
			map[string]string{"session": "no (the server's schema of ChatCompletionRequest has no session_id)"},
			[]string{"cache_salt", "priority", "return_token_ids"},
		},
		{
			"nonsense everywhere", &fake{version: "<html>", schema: "<html>", sources: "[]", metrics: "{"},
			map[string]string{"session": "not known", "sources": "not known (GET /kv_event_sources was answered in another form)", "metrics": "not known"},
			[]string{"cache_salt", "priority"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			engine := start(t, c.fake, func(c *vllm.Config) { c.Sessions, c.PromptTokens = true, true })
			f, err := engine.Detect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]vllm.Support{
				"session": f.Session, "salt": f.Salt, "priority": f.Priority, "tokens": f.PromptTokens, "sources": f.EventSources,
				"reset": f.ResetCache, "tokenize": f.Tokenize, "metrics": f.Metrics, "prefixes": f.PrefixCache,
			}
			for name, want := range c.want {
				if text := got[name].String(); !strings.HasPrefix(text, want) {
					t.Errorf("%s: %s, want %s", name, text, want)
				}
			}
			if !slices.Equal(f.Models, []string{"tiny"}) || f.Window != 1900 {
				t.Errorf("models %v, window %d", f.Models, f.Window)
			}
			one := 1
			if _, err := engine.Chat(t.Context(), vllm.Request{Request: question("a"), Tenant: "team", Session: "s", Priority: &one}, nil); err != nil {
				t.Fatal(err)
			}
			var sent []string
			for name := range c.fake.last(t).body {
				if slices.Contains([]string{"cache_salt", "priority", "return_token_ids", "session_id"}, name) {
					sent = append(sent, name)
				}
			}
			slices.Sort(sent)
			if !slices.Equal(sent, c.sent) {
				t.Errorf("sent %v, want %v", sent, c.sent)
			}
		})
	}
}

// TestDetectFails: only a server that is not there or not well is an error.
func TestDetectFails(t *testing.T) {
	engine := start(t, &fake{sick: true}, nil)
	if _, err := engine.Detect(t.Context()); !errors.Is(err, engines.ErrRefused) {
		t.Errorf("sick: %v", err)
	}
	gone, err := vllm.New(vllm.Config{Server: openai.Config{BaseURL: "http://127.0.0.1:1"}, Patience: soon})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gone.Detect(t.Context()); !errors.Is(err, engines.ErrUnreachable) {
		t.Errorf("not there: %v", err)
	}
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hangs.Close()
	patient, err := vllm.New(vllm.Config{Server: openai.Config{BaseURL: hangs.URL}, Patience: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := patient.Detect(t.Context()); !errors.Is(err, engines.ErrUnreachable) || !strings.Contains(err.Error(), "no answer for 1ns") {
		t.Errorf("hangs: %v", err)
	}
	_ = patient.Close()
}

// TestFromAnswers: what only an answer can tell is known after one, and a new version is asked again.
func TestFromAnswers(t *testing.T) {
	f := &fake{version: `{"version":"0.32.0"}`, details: true}
	engine := start(t, f, func(c *vllm.Config) { c.PromptTokens = true })
	before, err := engine.Detect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if before.CachedTokens.Known || before.RequestID.Known {
		t.Errorf("known before any answer: %+v", before)
	}
	if _, err := engine.Chat(t.Context(), vllm.Request{Request: question("req-a")}, nil); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		got := engine.Features()
		if !got.CachedTokens.Has || !got.RequestID.Has || got.PromptTokens.How != "an answer has prompt_token_ids" {
			t.Errorf("%s: cached tokens %v, IDs %v, prompt tokens %v", when, got.CachedTokens, got.RequestID, got.PromptTokens)
		}
	}
	check("after an answer")
	if _, err := engine.Detect(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("asked again")
	f.details = false // as releases that leave a 0 out
	if _, err := engine.Chat(t.Context(), vllm.Request{Request: question("req-b")}, nil); err != nil {
		t.Fatal(err)
	}
	check("an answer without a count")
	f.version = `{"version":"0.9.2"}`
	got, err := engine.Detect(t.Context())
	if err != nil || got.CachedTokens.Known || got.RequestID.Known || got.PromptTokens.Has {
		t.Errorf("another version: %+v, %v", got, err)
	}

	poor := start(t, &fake{otherIDs: true}, nil)
	if _, err := poor.Generate(t.Context(), question("req-a"), nil); err != nil {
		t.Fatal(err)
	}
	got = poor.Features()
	if got.CachedTokens.Known || got.CachedTokens.How == "" || !got.RequestID.Known || got.RequestID.Has {
		t.Errorf("a server without either: %v, %v", got.CachedTokens, got.RequestID)
	}
}

func TestConformance(t *testing.T) {
	for _, details := range []bool{true, false} {
		enginetest.Run(t, func(t *testing.T) engines.Engine {
			f := &fake{version: `{"version":"0.32.0"}`, schema: schema, sources: sources, metrics: metrics, details: details}
			engine := start(t, f, func(c *vllm.Config) { c.PromptTokens, c.Sessions, c.Server.Scope.Tenant = true, true, "team" })
			if _, err := engine.Detect(t.Context()); err != nil {
				t.Fatal(err)
			}
			return engine
		})
	}
}

// TestPlaces: the ID is where vLLM reads it, also for a request without one.
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
		_ = json.Unmarshal(sent.body["request_id"], &member)
		if response.ID == "" || id != "" && response.ID != id || sent.header.Get("X-Request-Id") != response.ID || member != response.ID || sent.body["rid"] != nil {
			t.Errorf("%q was answered as %q and sent as %q and %q", id, response.ID, sent.header.Get("X-Request-Id"), member)
		}
	}
}
