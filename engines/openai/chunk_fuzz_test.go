package openai

import (
	"strings"
	"testing"
)

// FuzzChunk: no chunk makes the decoder panic, and whatever it accepts has counts that make sense.
func FuzzChunk(f *testing.F) {
	for _, seed := range []string{
		`{"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}`,
		`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":8}}}`,
		`{"choices":[{"message":{"content":"x"}}],"timings":{"cache_n":1,"prompt_n":2,"predicted_n":3}}`,
		`{"error":{"message":"m","code":"c"}}`, `{"error":"m"}`, `{"object":"error","message":"m","code":400}`, `{"usage":[]}`, `null`, `[]`, `{`,
		`{"timings":{"cache_n":9223372036854775807,"prompt_n":9223372036854775807}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := decodeChunk(data)
		if err != nil {
			if d.text != "" {
				t.Errorf("text %q with error %v", d.text, err)
			}
			return
		}
		u := d.counts.result()
		if u.PromptTokens < 0 || u.OutputTokens < 0 || u.CachedTokens < 0 || u.CachedTokens > 0 && !u.CachedKnown {
			t.Errorf("usage %+v", u)
		}
		if d.reported != nil && (len(d.reported.Message) > maxErrorMessage+len("…") || strings.ContainsAny(d.reported.Message, "\r\n\x00")) {
			t.Errorf("message %q", d.reported.Message)
		}
	})
}

func FuzzErrorMessage(f *testing.F) {
	f.Add([]byte(`{"error":{"message":"m"}}`), "application/json")
	f.Add([]byte(`<html><p>x</p>`), "text/html")
	f.Fuzz(func(t *testing.T, body []byte, kind string) {
		if m := errorMessage(body, kind); len(m) > maxErrorMessage+len("…") || strings.ContainsAny(m, "\r\n\x00\x1b") {
			t.Errorf("message %q", m)
		}
	})
}
