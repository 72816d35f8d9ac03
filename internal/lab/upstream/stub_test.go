package upstream_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/lab/upstream"
)

// TestStub: the fixed answers, too, are what the openai client understands.
func TestStub(t *testing.T) {
	for name, change := range map[string]func(*openai.Config){"streamed": nil, "whole": nothingStreamed} {
		t.Run(name, func(t *testing.T) {
			engine := start(t, upstream.Options{Stub: true}, change)
			if got := ask(t, engine, "", long, 0); got.Text != "ok" || got.Finish != "stop" || got.Usage.OutputTokens != 1 ||
				!got.Usage.CachedKnown {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestStubStreams: the stub streams when the body asks for it, however it is written and whatever its texts say.
func TestStubStreams(t *testing.T) {
	stub := upstream.New(upstream.Options{Stub: true})
	space := rapid.SampledFrom([]string{"", " ", "\n\t"})
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{`"stream":true`, `"stream": true`, `stream`, `\"stream":true`}))
	rapid.Check(t, func(t *rapid.T) {
		stream := rapid.Bool().Draw(t, "stream")
		value := "false"
		if stream {
			value = "true"
		}
		content, err := json.Marshal(text.Draw(t, "text"))
		if err != nil {
			t.Fatal(err)
		}
		members := rapid.Permutation([]string{
			`"stream"` + space.Draw(t, "before") + ":" + space.Draw(t, "behind") + value,
			`"stop":"stream"`,
			`"messages":[{"role":"user","content":` + string(content) + `}]`,
		}).Draw(t, "members")
		w := post(t.Context(), stub, "/v1/chat/completions", "{"+strings.Join(members, ",")+"}")
		if got := strings.HasPrefix(w.Body.String(), "data: "); got != stream {
			t.Fatalf("streamed %t, want %t", got, stream)
		}
	})
}
