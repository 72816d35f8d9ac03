package openai_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines/openai"
)

func TestNewRefuses(t *testing.T) {
	const good = "http://127.0.0.1:8000/v1"
	cases := []struct {
		name   string
		config openai.Config
		want   []string // parts of the error
		not    string
	}{
		{"no URL", openai.Config{}, []string{"BaseURL", "empty"}, ""},
		{"no scheme", openai.Config{BaseURL: "127.0.0.1:8000"}, []string{"BaseURL", "127.0.0.1:8000"}, ""},
		{"host as scheme", openai.Config{BaseURL: "localhost:8000"}, []string{"BaseURL", "localhost:8000", "http or https"}, ""},
		{"other scheme", openai.Config{BaseURL: "ftp://host"}, []string{"BaseURL", "ftp://host", "http or https"}, ""},
		{"no host", openai.Config{BaseURL: "http:///v1"}, []string{"BaseURL", "host"}, ""},
		{"query", openai.Config{BaseURL: "http://host/v1?a=b"}, []string{"BaseURL", "query"}, ""},
		{"password kept secret", openai.Config{BaseURL: "http://u:secret@host/%zz"}, []string{"BaseURL"}, "secret"},
		{"password kept secret, query", openai.Config{BaseURL: "http://u:secret@host/?q"}, []string{"BaseURL", "query"}, "secret"},
		{
			"extra",
			openai.Config{BaseURL: good, Extra: map[string]json.RawMessage{"seed": json.RawMessage("{1")}},
			[]string{"Extra", "seed", "{1"},
			"",
		},
		{"event bound", openai.Config{BaseURL: good, MaxEventBytes: 10}, []string{"MaxEventBytes", "10"}, ""},
		{"answer bound", openai.Config{BaseURL: good, MaxAnswerBytes: -1}, []string{"MaxAnswerBytes", "-1"}, ""},
		{"wait", openai.Config{BaseURL: good, RetryWait: -time.Second}, []string{"RetryWait", "-1s"}, ""},
		{"places", openai.Config{BaseURL: good, IDs: openai.IDNowhere | openai.IDRid}, []string{"IDs", "0xc"}, ""},
		{"unknown place", openai.Config{BaseURL: good, IDs: 128}, []string{"IDs", "0x80"}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := openai.New(c.config)
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
			if c.not != "" && strings.Contains(err.Error(), c.not) {
				t.Errorf("error %q says %q", err, c.not)
			}
		})
	}
}

func TestBaseURL(t *testing.T) {
	cases := []struct{ suffix, wantPath string }{
		{"", "/v1/chat/completions"},
		{"/", "/v1/chat/completions"},
		{"/v1", "/v1/chat/completions"},
		{"/v1/", "/v1/chat/completions"},
		{"/proxy/a/v1", "/proxy/a/v1/chat/completions"},
		{"/other", "/other/chat/completions"},
	}
	for _, c := range cases {
		t.Run(c.suffix, func(t *testing.T) {
			f, engine := startFake(t, streams(piece("x"), stop), func(config *openai.Config) {
				config.BaseURL = strings.TrimSuffix(config.BaseURL, "/v1") + c.suffix
			})
			if _, err := engine.Generate(t.Context(), question("a"), nil); err != nil {
				t.Fatal(err)
			}
			if got := f.requests()[0].path; got != c.wantPath {
				t.Errorf("path %q, want %q", got, c.wantPath)
			}
		})
	}
}

func TestName(t *testing.T) {
	engine := newEngine(t, openai.Config{BaseURL: "http://user:secret@host:8000"})
	if got, want := engine.Name(), "openai:http://user:xxxxx@host:8000/v1"; got != want {
		t.Errorf("Name() = %q, want %q", got, want)
	}
	if got := newEngine(t, openai.Config{BaseURL: "http://host", Label: "vLLM a"}).Name(); got != "vLLM a" {
		t.Errorf("Name() = %q", got)
	}
}

// TestConfigIsCopied: what the caller does with its maps after New changes nothing.
func TestConfigIsCopied(t *testing.T) {
	config := openai.Config{
		Extra:  map[string]json.RawMessage{"seed": json.RawMessage("1")},
		Header: http.Header{"X-Team": {"a"}},
	}
	f, engine := startFake(t, streams(piece("x"), stop), func(c *openai.Config) {
		c.Extra, c.Header = config.Extra, config.Header
	})
	config.Extra["seed"] = json.RawMessage("2")
	config.Header.Set("X-Team", "b")
	if _, err := engine.Generate(t.Context(), question("a"), nil); err != nil {
		t.Fatal(err)
	}
	got := f.requests()[0]
	if string(got.body["seed"]) != "1" || got.header.Get("X-Team") != "a" {
		t.Errorf("sent seed %s and team %q", got.body["seed"], got.header.Get("X-Team"))
	}
}
