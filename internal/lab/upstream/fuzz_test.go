package upstream_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/upstream"
)

// FuzzBody: whatever the body, both endpoints answer 200 or 400, with JSON or with a stream that ends as it should.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"messages":[{"role":"user","content":"a"}]}`, `{"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"é\u0000"}]}]}`,
		`{"prompt":[1,2],"stream":true,"stream_options":{"include_usage":true}}`, `{"prompt":"a","seed":-9223372036854775808}`, `{"max_tokens":1e3}`, `null`, `[`,
		`{"tools":[{}],"messages":[{"role":"tool","content":null,"tool_calls":{}}],"max_completion_tokens":3}`, `{"prompt":"` + "\xff" + `"}`,
	} {
		f.Add(seed)
	}
	s := upstream.New(upstream.Options{CapacityTokens: 1000, Reply: upstream.Echo, Tokens: 8})
	stub := upstream.New(upstream.Options{Stub: true})
	f.Fuzz(func(t *testing.T, body string) {
		for _, path := range []string{"/v1/chat/completions", "/v1/completions"} {
			for _, h := range []http.Handler{s, stub} {
				w := post(t.Context(), h, path, body)
				out := w.Body.String()
				switch {
				case strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream"):
					if w.Code != http.StatusOK || !strings.HasSuffix(out, "data: [DONE]\n\n") {
						t.Errorf("%s: %d %q", path, w.Code, out)
					}
				case w.Code != http.StatusOK && w.Code != http.StatusBadRequest || !json.Valid(w.Body.Bytes()):
					t.Errorf("%s: %d %q", path, w.Code, out)
				}
			}
		}
	})
}
