package selfhosted_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/enginetest"
	"github.com/ragpilot/ragpilot/engines/internal/selfhosted"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// release is a release of a server: what it answers, what Detect finds, and what is sent to it.
type release struct {
	name    string
	answers map[string]string
	want    map[string]string // how a feature is known
	sent    string            // members of a chat that needs them all
	block   int
}

func version(text string) string { return `{"version":"` + text + `"}` }

var vllmReleases = []release{
	{
		"0.32.0, as it is", kinds[0].answers,
		map[string]string{
			"session": "yes (the server's schema", "salt": "yes (", "priority": "yes (", "tokens": "yes (",
			"sources": "yes (GET /kv_event_sources answers",
			"reset":   "yes (", "tokenize": "yes (POST /tokenize answers", "metrics": "yes", "prefixes": "yes",
		},
		"cache_salt priority return_token_ids session_id", 32,
	},
	{
		"0.32.0 without its schema",
		map[string]string{"/version": version("0.32.0+cpu")},
		map[string]string{
			"session": "yes (version 0.32.0+cpu", "salt": "not known", "tokens": "yes (version 0.32.0+cpu",
			"sources": "no (GET /kv_event_sources is not there)",
			"reset":   "not known", "metrics": "no (", "prefixes": "not known",
		},
		"cache_salt priority return_token_ids session_id", 0,
	},
	{
		"0.20.0",
		map[string]string{"/version": version("0.20.0")},
		map[string]string{"session": "not known (version 0.20.0, seen in 0.28.0)", "tokens": "yes (version"},
		"cache_salt priority return_token_ids", 0,
	},
	{
		"0.9.2",
		map[string]string{"/version": version("0.9.2"), "/metrics": oldVLLMMetrics},
		map[string]string{"session": "not known", "tokens": "no (version 0.9.2, there since 0.10.2)", "prefixes": "no ("},
		"cache_salt priority", 16,
	},
	{
		"a build without tags that has it all",
		map[string]string{"/version": version("0.1.dev1+g0123abc"), "/openapi.json": vllmSchema},
		map[string]string{"session": "yes (the server's schema", "tokens": "yes (the server's schema"},
		"cache_salt priority return_token_ids session_id", 0,
	},
	{
		"a build without tags and schema",
		map[string]string{"/version": version("0.1.dev1+g0123abc")},
		map[string]string{"session": "not known", "tokens": `not known (version "0.1.dev1+g0123abc" says nothing)`},
		"cache_salt priority", 0,
	},
	{
		"a schema that says no beats the version",
		map[string]string{"/version": version("0.33.0"), "/openapi.json": strings.ReplaceAll(vllmSchema, `"session_id":{},`, "")},
		map[string]string{"session": "no (the server's schema of ChatCompletionRequest has no session_id)"},
		"cache_salt priority return_token_ids", 0,
	},
	{
		"nonsense everywhere",
		map[string]string{"/version": "<html>", "/openapi.json": "<html>", "/kv_event_sources": "[]", "/metrics": "{"},
		map[string]string{
			"session": "not known", "sources": "not known (GET /kv_event_sources was answered in another form)",
			"metrics": "not known",
		},
		"cache_salt priority", 0,
	},
}

var sglangReleases = []release{
	{
		"0.5.23, as it is", kinds[1].answers,
		map[string]string{
			"session": "yes (the server's schema", "salt": "yes (", "key": "yes (",
			"priority": "no (/server_info has enable_priority_scheduling: false)",
			"tokens":   "yes (", "sources": "yes (/server_info has kv_events)", "reset": "yes (", "tokenize": "yes (", "metrics": "yes",
			"cached": "yes (/server_info has enable_cache_report)", "prefixes": "yes (/server_info has disable_radix_cache: false)",
		},
		"cache_salt priority return_prompt_token_ids session_id", 64,
	},
	{
		"0.5.23 without its schema",
		map[string]string{"/server_info": sglangInfo},
		map[string]string{
			"session": "yes (version 0.5.23", "salt": "yes (version", "key": "not known", "tokens": "yes (version",
			"reset": "not known", "metrics": "no (",
		},
		"cache_salt priority return_prompt_token_ids session_id", 64,
	},
	{
		"0.5.9 under the older name",
		map[string]string{"/get_server_info": `{"version":"0.5.9","page_size":16,"enable_cache_report":false,"disable_radix_cache":true}`},
		map[string]string{
			"session": "not known (version 0.5.9, seen in 0.5.20)", "salt": "not known", "tokens": "not known",
			"sources": "not known (/get_server_info has no kv_events",
			"cached":  "no (/get_server_info has enable_cache_report: false)", "priority": "not known",
			"prefixes": "no (/get_server_info has disable_radix_cache)",
		},
		"cache_salt priority", 16,
	},
	{
		"a schema with extra_key alone",
		map[string]string{"/get_server_info": version("0.5.9"), "/openapi.json": strings.ReplaceAll(sglangSchema, `"cache_salt":{},`, "")},
		map[string]string{"salt": "no (", "key": "yes ("},
		"extra_key priority return_prompt_token_ids session_id", 0,
	},
	{
		"nothing is reported", nil,
		map[string]string{
			"session": "not known", "sources": "no (GET /get_server_info is not there)", "cached": "not known",
			"prefixes": "not known",
		},
		"cache_salt priority", 0,
	},
	{
		"nonsense everywhere",
		map[string]string{"/server_info": "[]", "/openapi.json": "<html>", "/metrics": "{"},
		map[string]string{"session": "not known", "sources": "not known (GET /server_info was answered in another form)", "metrics": "not known"},
		"cache_salt priority", 0,
	},
}

// TestFeatures: what is found out, of which servers, and what is sent to them then.
func TestFeatures(t *testing.T) {
	for i, releases := range [][]release{vllmReleases, sglangReleases} {
		for _, r := range releases {
			t.Run(kinds[i].name+" "+r.name, func(t *testing.T) { r.check(t, kinds[i]) })
		}
	}
}

func (r release) check(t *testing.T, k kind) {
	server := &fake{kind: k, answers: r.answers}
	engine := detected(t, server, func(c *selfhosted.Config) { c.Sessions = true })
	f := engine.Features()
	got := map[string]selfhosted.Support{
		"session": f.Session, "salt": f.Salt, "key": f.ExtraKey, "priority": f.Priority, "tokens": f.PromptTokens, "sources": f.EventSources,
		"reset": f.ResetCache, "tokenize": f.Tokenize, "metrics": f.Metrics, "cached": f.CachedTokens, "prefixes": f.PrefixCache,
	}
	for name, want := range r.want {
		if text := got[name].String(); !strings.HasPrefix(text, want) {
			t.Errorf("%s: %s, want %s", name, text, want)
		}
	}
	if !slices.Equal(f.Models, []string{"tiny"}) || f.Window != 1900 || f.BlockSize != r.block {
		t.Errorf("models %v, window %d, blocks of %d", f.Models, f.Window, f.BlockSize)
	}
	one := 1
	req := selfhosted.Request{Request: question("a"), Tenant: "team", Session: "s", Priority: &one, PromptTokens: true}
	if _, err := engine.Chat(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	var sent []string
	for name := range server.last(t).body {
		if slices.Contains([]string{"cache_salt", "extra_key", "priority", k.tokens, "session_id"}, name) {
			sent = append(sent, name)
		}
	}
	slices.Sort(sent)
	if got := strings.Join(sent, " "); got != r.sent {
		t.Errorf("sent %v, want %v", got, r.sent)
	}
}

// TestDetectFails: only a server that is not there or not well is an error.
func TestDetectFails(t *testing.T) {
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hangs.Close()
	eachKind(t, func(t *testing.T, k kind) {
		if _, err := start(t, &fake{kind: k, sick: true}, nil).Detect(t.Context()); !errors.Is(err, engines.ErrRefused) {
			t.Errorf("sick: %v", err)
		}
		for _, c := range []struct {
			name   string
			want   string
			config selfhosted.Config
		}{
			{"not there", "", selfhosted.Config{Server: openai.Config{BaseURL: "http://127.0.0.1:1"}, Patience: soon}},
			{"hangs", "no answer for 1ns", selfhosted.Config{Server: openai.Config{BaseURL: hangs.URL}, Patience: 1}},
		} {
			engine, err := selfhosted.New(k.dialect, c.config)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := engine.Detect(t.Context()); !errors.Is(err, engines.ErrUnreachable) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", c.name, err)
			}
			_ = engine.Close()
		}
	})
}

// TestFromAnswers: what only an answer can show is known after one, and a new version is asked again.
func TestFromAnswers(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		path, versions := "/version", []string{"0.32.0", "0.9.2"}
		if k.sglang {
			path, versions = "/get_server_info", []string{"0.5.9", "0.5.10"}
		}
		f := &fake{kind: k, counts: true, answers: map[string]string{path: version(versions[0]), "/openapi.json": k.answers["/openapi.json"]}}
		engine := start(t, f, func(c *selfhosted.Config) { c.PromptTokens = true })
		detect := func() selfhosted.Features {
			t.Helper()
			found, err := engine.Detect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
		ask := func(engine *selfhosted.Engine) {
			t.Helper()
			if _, err := engine.Generate(t.Context(), question("req-a"), nil); err != nil {
				t.Fatal(err)
			}
		}
		check := func(when string) {
			t.Helper()
			got := engine.Features()
			if !got.CachedTokens.Has || !got.RequestID.Has || got.PromptTokens.How != "an answer has prompt_token_ids" {
				t.Errorf("%s: cached tokens %v, IDs %v, prompt tokens %v", when, got.CachedTokens, got.RequestID, got.PromptTokens)
			}
		}
		if before := detect(); before.CachedTokens.Known || before.RequestID.Known {
			t.Errorf("known before any answer: %+v", before)
		}
		ask(engine)
		check("after an answer")
		detect()
		check("asked again")
		f.counts = false // as releases that leave a 0 out
		ask(engine)
		check("an answer without a count")
		f.answers[path] = version(versions[1])
		if got := detect(); got.CachedTokens.Known || got.RequestID.Known || !strings.Contains(got.PromptTokens.How, "schema") {
			t.Errorf("another version: %+v", got)
		}

		poor := start(t, &fake{kind: k, otherIDs: true}, nil)
		ask(poor)
		if got := poor.Features(); got.CachedTokens.Known || got.CachedTokens.How == "" || !got.RequestID.Known || got.RequestID.Has {
			t.Errorf("a server without either: %v, %v", got.CachedTokens, got.RequestID)
		}
	})
}

func TestConformance(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		for _, counts := range []bool{true, false} {
			enginetest.Run(t, func(t *testing.T) engines.Engine {
				return detected(t, &fake{kind: k, answers: k.answers, counts: counts}, func(c *selfhosted.Config) {
					c.PromptTokens, c.Sessions, c.Server.Scope.Tenant = !k.sglang, true, "team"
				})
			})
		}
	})
}
