package openai_test

import (
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
)

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func TestWhatIsSent(t *testing.T) {
	cold := 0.0
	full := engines.Request{
		ID:          "req-1",
		Model:       "other",
		Messages:    []engines.Message{{Role: engines.System, Content: "Be <brief> & \"kind\""}, {Role: engines.User, Content: "Warum\n日本?"}},
		MaxTokens:   7,
		Temperature: &cold,
	}
	const messages = `[{"role":"system","content":"Be <brief> & \"kind\""},{"role":"user","content":"Warum\n日本?"}]`
	cases := []struct {
		name   string
		req    engines.Request
		change func(*openai.Config)
		want   map[string]string
		header map[string]string // "" means: not sent
	}{
		{
			name: "everything",
			req:  full,
			want: map[string]string{
				"model": `"other"`, "messages": messages, "stream": "true", "stream_options": `{"include_usage":true}`,
				"max_tokens": "7", "temperature": "0", "request_id": `"req-1"`, "rid": `"req-1"`,
			},
			header: map[string]string{"X-Request-Id": "req-1", "Authorization": "", "Content-Type": "application/json"},
		},
		{
			name:   "the least",
			req:    question(""),
			change: func(c *openai.Config) { c.Model = "" },
			want: map[string]string{
				"messages": `[{"role":"user","content":"Why?"}]`, "stream": "true", "stream_options": `{"include_usage":true}`,
			},
			header: map[string]string{"X-Request-Id": ""},
		},
		{
			name: "ID in the header alone, with a key",
			req:  question("req-2"),
			change: func(c *openai.Config) {
				c.IDs, c.APIKey = openai.IDHeader, "key"
			},
			want: map[string]string{
				"model": `"fake-model"`, "messages": `[{"role":"user","content":"Why?"}]`, "stream": "true", "stream_options": `{"include_usage":true}`,
			},
			header: map[string]string{"X-Request-Id": "req-2", "Authorization": "Bearer key"},
		},
		{
			name:   "ID nowhere",
			req:    question("req-3"),
			change: func(c *openai.Config) { c.IDs = openai.IDNowhere },
			want: map[string]string{
				"model": `"fake-model"`, "messages": `[{"role":"user","content":"Why?"}]`, "stream": "true", "stream_options": `{"include_usage":true}`,
			},
			header: map[string]string{"X-Request-Id": ""},
		},
		{
			name: "extra wins, the request's over the engine's, and an empty value removes",
			req: engines.Request{
				ID:       "req-4",
				Messages: question("").Messages,
				Extra:    map[string]json.RawMessage{"seed": raw("2"), "stream_options": nil, "rid": raw(`"mine"`)},
				Header:   http.Header{"x-team": {"b"}, "X-Request-Id": {"theirs"}},
			},
			change: func(c *openai.Config) {
				c.APIKey = "key"
				c.IDs = openai.IDHeader | openai.IDRid
				c.Extra = map[string]json.RawMessage{"seed": raw("1"), "cache_salt": raw(`"tenant"`), "model": raw(`"forced"`)}
				c.Header = http.Header{"X-Team": {"a"}, "X-Session-ID": {"s"}, "authorization": nil}
			},
			want: map[string]string{
				"model": `"forced"`, "messages": `[{"role":"user","content":"Why?"}]`, "stream": "true",
				"seed": "2", "cache_salt": `"tenant"`, "rid": `"mine"`,
			},
			header: map[string]string{"X-Request-Id": "theirs", "X-Team": "b", "X-Session-Id": "s", "Authorization": ""},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f, engine := startFake(t, streams(piece("x"), stop), c.change)
			if _, err := engine.Generate(t.Context(), c.req, nil); err != nil {
				t.Fatal(err)
			}
			sent := f.requests()[0]
			got := map[string]string{}
			for name, value := range sent.body {
				got[name] = string(value)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			for name, want := range c.header {
				if got := sent.header.Get(name); got != want {
					t.Errorf("header %s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestRequestsThatAreNotSent(t *testing.T) {
	hot := math.NaN()
	cases := []struct {
		name string
		req  engines.Request
		want string
	}{
		{"no messages", engines.Request{ID: "a"}, "no messages"},
		{"no role", engines.Request{Messages: []engines.Message{{Content: "x"}}}, "message 0"},
		{"negative limit", engines.Request{Messages: question("").Messages, MaxTokens: -1}, "MaxTokens -1"},
		{"temperature", engines.Request{Messages: question("").Messages, Temperature: &hot}, "Temperature"},
		{"extra", engines.Request{Messages: question("").Messages, Extra: map[string]json.RawMessage{"stop": raw("[")}}, `Extra["stop"]`},
		{"ID", question("a\r\nX-Evil: 1"), "control characters"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f, engine := startFake(t, streams(piece("x"), stop), nil)
			_, err := engine.Generate(t.Context(), c.req, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), f.URL) {
				t.Errorf("error %v does not say %q and %q", err, c.want, f.URL)
			}
			if n := len(f.requests()); n != 0 {
				t.Errorf("%d requests were sent", n)
			}
		})
	}
}
