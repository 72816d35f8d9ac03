package upstream

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/ragpilot/ragpilot/engines"
)

// stubAnswers are the fixed answers of one endpoint.
type stubAnswers struct {
	whole, stream, streamUsage []byte
}

func newStubAnswers(k *kind, model string, created int64) stubAnswers {
	a := answer{kind: k, id: k.prefix + "stub", model: model, created: created}
	used := engines.Usage{PromptTokens: 1, OutputTokens: 1, CachedKnown: true}
	stream := join(a.opening(), a.piece("ok"), a.end("stop"))
	return stubAnswers{
		whole:       a.whole("ok", "stop", used),
		stream:      join(stream, done),
		streamUsage: join(stream, a.usage(used), done),
	}
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

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
