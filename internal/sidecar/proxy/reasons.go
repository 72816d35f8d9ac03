package proxy

import (
	"bytes"

	"github.com/tidwall/gjson"
)

// reasons finds in an answer what a provider says of its cache: Anthropic's diagnostics, and OpenAI's prompt_cache_diagnostics of the
// Responses API. It takes the answer in pieces, and follows the nesting of its JSON, so that no text of the model is taken for a member. A
// stream has one object on each line.
type reasons struct {
	key    []byte
	depth  int // at which the key stands: an object of its own answer, or of an event
	stream bool

	now     int // nesting
	inText  bool
	escaped bool
	plain   bool   // of a stream: in a line that is no data
	line    int    // bytes of the line so far
	word    []byte // the string that is being read, at the depth
	member  bool   // the key was read, its value follows
	taking  bool
	value   []byte
}

// maxReason is the most that is taken of the value, in bytes: it has a few short members.
const maxReason = 1 << 10

// newReasons returns nil if the dialect has no such member.
func newReasons(d dialect, stream bool) *reasons {
	r := &reasons{depth: 1, stream: stream}
	switch d {
	case anthropic:
		r.key = []byte("diagnostics")
	case responses:
		r.key = []byte("prompt_cache_diagnostics")
	default:
		return nil
	}
	if stream {
		r.depth = 2 // in message, or in response
	}
	return r
}

// Write takes a piece of the answer. It never fails.
func (r *reasons) Write(p []byte) (int, error) {
	for _, c := range p {
		r.take(c)
	}
	return len(p), nil
}

// take takes one byte.
func (r *reasons) take(c byte) {
	if r.stream && c == '\n' {
		r.now, r.inText, r.escaped, r.member, r.taking, r.line, r.plain = 0, false, false, false, false, 0, false
		return
	}
	if r.line++; r.stream && r.line <= len(dataPrefix) {
		r.plain = r.plain || c != dataPrefix[r.line-1]
		return
	}
	if r.plain {
		return
	}
	if r.taking {
		if len(r.value) < maxReason {
			r.value = append(r.value, c)
		}
	}
	switch {
	case r.escaped:
		r.escaped = false
	case r.inText && c == '\\':
		r.escaped = true
	case r.inText && c == '"':
		r.inText = false
	case r.inText:
		if r.now == r.depth && !r.taking && len(r.word) <= len(r.key) {
			r.word = append(r.word, c)
		}
	default:
		r.sign(c)
	}
}

const dataPrefix = "data:"

// sign takes a byte outside of strings.
func (r *reasons) sign(c byte) {
	switch c {
	case '"':
		r.inText, r.word = true, r.word[:0]
	case ':':
		if r.now == r.depth && !r.taking {
			r.member = bytes.Equal(r.word, r.key)
		}
	case ',':
		if r.now == r.depth {
			r.member, r.taking = false, false
		}
	case '{', '[':
		if r.now == r.depth && r.member && c == '{' {
			r.taking, r.value = true, append(r.value[:0], c)
		}
		r.now++
	case '}', ']':
		r.now--
		if r.now == r.depth {
			r.member, r.taking = false, false
		}
	}
}

// found returns what the provider said. Without a reason there was no miss, or the provider does not know.
func (r *reasons) found() ProviderMiss {
	out := ProviderMiss{Tokens: -1}
	if len(r.value) == 0 || !gjson.ValidBytes(r.value) {
		return out
	}
	v := gjson.ParseBytes(r.value)
	reason, tokens := v.Get("reason"), v.Get("cache_missed_tokens")
	if inner := v.Get("cache_miss_reason"); inner.IsObject() {
		reason, tokens = inner.Get("type"), inner.Get("cache_missed_input_tokens")
	} else if v.Get("type").Str != "cache_miss" {
		return out
	}
	if reason.Type == gjson.String {
		out.Reason = reason.Str
	}
	if tokens.Type == gjson.Number && tokens.Num >= 0 && tokens.Num <= maxTokens {
		out.Tokens = int(tokens.Num)
	}
	return out
}
