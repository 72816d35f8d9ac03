package upstream

import (
	"bytes"
	"context"
	"net/http"
	"strconv"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/openaiserver"
)

// stubAnswers are the fixed answers of one endpoint.
type stubAnswers struct {
	whole, stream, streamUsage []byte
}

func newStubAnswers(front *openaiserver.Front, k *openaiserver.Kind, model string) stubAnswers {
	answer := func(stream, usage bool) []byte {
		var out memory
		front.Complete(context.Background(), &out, &openaiserver.Completion{
			Kind: k, ID: "stub", Model: model, Stream: stream, Usage: usage, Prompts: 1,
			Generate: func(_ context.Context, onText func(int, string) error) ([]engines.Response, error) {
				used := engines.Usage{PromptTokens: 1, OutputTokens: 1, CachedKnown: true}
				return []engines.Response{{Text: "ok", Finish: "stop", Usage: used}}, onText(0, "ok")
			},
		})
		return out.Bytes()
	}
	return stubAnswers{answer(false, false), answer(true, false), answer(true, true)}
}

// memory keeps the body of an answer.
type memory struct{ bytes.Buffer }

func (*memory) Header() http.Header { return http.Header{} }
func (*memory) WriteHeader(int)     {}
func (*memory) Flush()              {}

func (s *stubAnswers) serve(w http.ResponseWriter, body []byte) {
	h := w.Header()
	if !hasTrue(body, `"stream"`) {
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", strconv.Itoa(len(s.whole)))
		_, _ = w.Write(s.whole)
		return
	}
	h.Set("Content-Type", "text/event-stream")
	out := s.stream
	if hasTrue(body, `"include_usage"`) {
		out = s.streamUsage
	}
	_, _ = w.Write(out)
}

// hasTrue reports whether a member of this name, in quotes, is true anywhere in a JSON text. Inside of strings quotes
// are escaped, so text is not mistaken for a member; members of inner objects are.
func hasTrue(body []byte, name string) bool {
	for {
		i := bytes.Index(body, []byte(name))
		if i < 0 {
			return false
		}
		body = body[i+len(name):]
		rest := bytes.TrimLeft(body, " \t\r\n")
		if len(rest) == 0 || rest[0] != ':' {
			continue
		}
		if bytes.HasPrefix(bytes.TrimLeft(rest[1:], " \t\r\n"), []byte("true")) {
			return true
		}
	}
}
