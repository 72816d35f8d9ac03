package sglang_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/enginetest"
	"github.com/ragpilot/ragpilot/engines/sglang"
)

// schema is what /openapi.json says of a chat, shortened.
const schema = `{"paths":{"/flush_cache":{}},"components":{"schemas":{"ChatCompletionRequest":{"properties":{
"rid":{},"session_id":{},"cache_salt":{},"extra_key":{},"return_prompt_token_ids":{}}}}}}`

const info = `{"model_path":"tiny","page_size":64,"max_total_num_tokens":120000,"enable_cache_report":true,"enable_priority_scheduling":false,"disable_radix_cache":false,
"internal_states":[{}],"version":"0.5.23","kv_events":{"publisher":"zmq","endpoint_host":"*","endpoint_port_base":5557,"topic":"kv",
"block_size":64,"dp_size":2,"replay_endpoint_port_base":6557}}`

const metrics = `# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{model_name="tiny",dp_rank="0"} 600.0
sglang:prompt_tokens_total{model_name="tiny",dp_rank="1"} 400.0
# TYPE sglang:cached_tokens_total counter
sglang:cached_tokens_total{model_name="tiny",cache_source="device"} 200.0
sglang:cached_tokens_total{model_name="tiny",cache_source="host"} 50.0
# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_total{model_name="tiny"} 30.0
# TYPE sglang:evicted_tokens_total counter
sglang:evicted_tokens_total{model_name="tiny"} 128.0
# TYPE sglang:load_back_tokens_total counter
sglang:load_back_tokens_total{model_name="tiny"} 64.0
# TYPE sglang:token_usage gauge
sglang:token_usage{model_name="tiny",dp_rank="0"} 0.1
sglang:token_usage{model_name="tiny",dp_rank="1"} 0.3
# TYPE sglang:cache_hit_rate gauge
sglang:cache_hit_rate{model_name="tiny"} 0.5
# TYPE sglang:kv_available_tokens gauge
sglang:kv_available_tokens{model_name="tiny"} 1000.0
# TYPE sglang:kv_evictable_tokens gauge
sglang:kv_evictable_tokens{model_name="tiny"} 500.0
# TYPE sglang:kv_used_tokens gauge
sglang:kv_used_tokens{model_name="tiny"} 70.0
# TYPE sglang:hicache_host_used_tokens gauge
sglang:hicache_host_used_tokens{model_name="tiny"} 10.0
# TYPE sglang:hicache_host_total_tokens gauge
sglang:hicache_host_total_tokens{model_name="tiny"} 2000.0
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="tiny"} 3.0
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{model_name="tiny"} 2.0
`

// TestFeatures: what is found out, of which servers, and what is sent to them then.
func TestFeatures(t *testing.T) {
	for _, c := range []struct {
		name string
		fake *fake
		want map[string]string // how a feature is known
		sent []string          // members of a chat that needs them all
		page int
	}{
		{
			"0.5.23, as it is", &fake{info: info, schema: schema, metrics: metrics},
			map[string]string{
				"session": "yes (the server's schema", "salt": "yes (", "key": "yes (", "priority": "no (/server_info has enable_priority_scheduling: false)",
				"tokens": "yes (", "sources": "yes (/server_info has kv_events)", "reset": "yes (", "tokenize": "yes (", "metrics": "yes",
				"cached": "yes (/server_info has enable_cache_report)", "cache": "yes (/server_info has disable_radix_cache: false)",
			},
			[]string{"cache_salt", "priority", "return_prompt_token_ids", "session_id"},
			64,
		},
		{
			"0.5.23 without its schema", &fake{info: info},
			map[string]string{"session": "yes (version 0.5.23", "salt": "yes (version", "key": "not known", "tokens": "yes (version", "reset": "not known", "metrics": "no ("},
			[]string{"cache_salt", "priority", "return_prompt_token_ids", "session_id"},
			64,
		},
		{
			"0.5.9 under the older name", &fake{oldInfo: `{"version":"0.5.9","page_size":16,"enable_cache_report":false,"disable_radix_cache":true}`},
			map[string]string{
				"session": "not known (version 0.5.9, seen in 0.5.20)", "salt": "not known", "tokens": "not known", "sources": "not known (/get_server_info has no kv_events",
				"cached": "no (/get_server_info has enable_cache_report: false)", "priority": "not known", "cache": "no (/get_server_info has disable_radix_cache)",
			},
			[]string{"cache_salt", "priority"},
			16,
		},
		{
			"a schema with extra_key alone", &fake{oldInfo: `{"version":"0.5.9"}`, schema: strings.ReplaceAll(schema, `"cache_salt":{},`, "")},
			map[string]string{"salt": "no (", "key": "yes ("},
			[]string{"extra_key", "priority", "return_prompt_token_ids", "session_id"},
			0,
		},
		{
			"nothing is told", &fake{},
			map[string]string{"session": "not known", "sources": "no (GET /get_server_info is not there)", "cached": "not known", "cache": "not known"},
			[]string{"cache_salt", "priority"},
			0,
		},
		{
			"nonsense everywhere", &fake{info: "[]", schema: "<html>", metrics: "{"},
			map[string]string{"session": "not known", "sources": "not known (GET /server_info was answered in another form)", "metrics": "not known"},
			[]string{"cache_salt", "priority"},
			0,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			engine := start(t, c.fake, func(c *sglang.Config) { c.Sessions = true })
			f, err := engine.Detect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]sglang.Support{
				"session": f.Session, "salt": f.Salt, "key": f.ExtraKey, "priority": f.Priority, "tokens": f.PromptTokens, "sources": f.EventSources,
				"reset": f.ResetCache, "tokenize": f.Tokenize, "metrics": f.Metrics, "cached": f.CachedTokens, "cache": f.PrefixCache,
			}
			for name, want := range c.want {
				if text := got[name].String(); !strings.HasPrefix(text, want) {
					t.Errorf("%s: %s, want %s", name, text, want)
				}
			}
			if !slices.Equal(f.Models, []string{"tiny"}) || f.Window != 1900 || f.BlockSize != c.page {
				t.Errorf("models %v, window %d, page %d", f.Models, f.Window, f.BlockSize)
			}
			one := 1
			req := sglang.Request{Request: question("a"), Tenant: "team", Session: "s", Priority: &one, PromptTokens: true}
			if _, err := engine.Chat(t.Context(), req, nil); err != nil {
				t.Fatal(err)
			}
			var sent []string
			for name := range c.fake.last(t).body {
				if slices.Contains([]string{"cache_salt", "extra_key", "priority", "return_prompt_token_ids", "session_id"}, name) {
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

func TestDetectFails(t *testing.T) {
	if _, err := start(t, &fake{sick: true}, nil).Detect(t.Context()); !errors.Is(err, engines.ErrRefused) {
		t.Errorf("sick: %v", err)
	}
}

// TestFromAnswers: what only an answer can tell is known after one, and a new version is asked again.
func TestFromAnswers(t *testing.T) {
	f := &fake{oldInfo: `{"version":"0.5.9"}`, schema: schema, report: true}
	engine := start(t, f, nil)
	before, err := engine.Detect(t.Context())
	if err != nil || before.CachedTokens.Known || before.RequestID.Known {
		t.Fatalf("known before any answer: %+v, %v", before, err)
	}
	if _, err := engine.Chat(t.Context(), sglang.Request{Request: question("req-a"), PromptTokens: true}, nil); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"after an answer", "asked again"} {
		got := engine.Features()
		if !got.CachedTokens.Has || !got.RequestID.Has || got.PromptTokens.How != "an answer has prompt_token_ids" {
			t.Errorf("%s: cached tokens %v, IDs %v, prompt tokens %v", when, got.CachedTokens, got.RequestID, got.PromptTokens)
		}
		if _, err := engine.Detect(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	f.oldInfo = `{"version":"0.5.10"}`
	if got, err := engine.Detect(t.Context()); err != nil || got.CachedTokens.Known || got.RequestID.Known || !strings.Contains(got.PromptTokens.How, "schema") {
		t.Errorf("another version: %+v, %v", got, err)
	}

	poor := start(t, &fake{otherID: true}, nil)
	if _, err := poor.Generate(t.Context(), question("req-a"), nil); err != nil {
		t.Fatal(err)
	}
	if got := poor.Features(); got.CachedTokens.Known || got.CachedTokens.How == "" || !got.RequestID.Known || got.RequestID.Has {
		t.Errorf("a server without either: %v, %v", got.CachedTokens, got.RequestID)
	}
}

func TestConformance(t *testing.T) {
	for _, report := range []bool{true, false} {
		enginetest.Run(t, func(t *testing.T) engines.Engine {
			f := &fake{info: info, schema: schema, metrics: metrics, report: report}
			engine := start(t, f, func(c *sglang.Config) { c.Sessions, c.Server.Scope.Tenant = true, "team" })
			if _, err := engine.Detect(t.Context()); err != nil {
				t.Fatal(err)
			}
			return engine
		})
	}
}
