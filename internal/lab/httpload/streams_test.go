package httpload_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/lab/httpload"
	"github.com/ragpilot/ragpilot/internal/lab/upstream"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func streamBodies(t testing.TB, tokens int) *httpload.Made {
	t.Helper()
	return testkit.Must(httpload.Generate(httpload.BodyOptions{Stream: true, MaxTokens: tokens}))(t)
}

// TestStreams: in virtual time, a hundred streams that last ten seconds are open together and arrive whole.
func TestStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target, stop := serve(t, upstream.New(upstream.Options{Delay: time.Second, TokenDelay: 100 * time.Millisecond}).ServeHTTP)
		defer stop()
		got, err := httpload.Streams(t.Context(),
			httpload.StreamsConfig{Target: target, Bodies: streamBodies(t, 91), Streams: 100, Opening: 7, Tokens: 91})
		if err != nil {
			t.Fatal(err)
		}
		if got.Intact != 100 || got.PeakOpen != 100 || len(got.Errors) != 0 || got.Tokens != 9100 || got.Seconds != 10 {
			t.Errorf("%+v", got)
		}
		if got.TTFT.Count != 100 || !near(got.TTFT.Max, 1000*ms) {
			t.Errorf("%+v", got.TTFT)
		}
	})
}

// tampered gives each answer of upstream to change, as a list of events, before it is sent.
func tampered(change func(events []string) []string) http.HandlerFunc {
	engine := upstream.New(upstream.Options{})
	return func(w http.ResponseWriter, r *http.Request) {
		record := httptest.NewRecorder()
		engine.ServeHTTP(record, r)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range change(strings.SplitAfter(record.Body.String(), "\n\n")) {
			_, _ = io.WriteString(w, e)
		}
	}
}

// TestSpoiltStreams: whatever happens to a stream on its way is noticed. Its events are: role, ten tokens, the finish
// reason, usage, [DONE].
func TestSpoiltStreams(t *testing.T) {
	tests := []struct {
		name   string
		change func(e []string) []string
		want   string
	}{
		{"nothing", func(e []string) []string { return e }, ""},
		{"cut into bytes", func(e []string) []string { return strings.Split(strings.Join(e, ""), "") }, ""},
		{"a token is lost", func(e []string) []string { return slices.Delete(e, 3, 4) }, "corrupt stream"},
		{"the last token is lost", func(e []string) []string { return slices.Delete(e, 10, 11) }, "incomplete stream"},
		{"a token comes twice", func(e []string) []string { return slices.Insert(e, 3, e[3]) }, "corrupt stream"},
		{"two tokens swapped", func(e []string) []string { e[4], e[5] = e[5], e[4]; return e }, "corrupt stream"},
		{"a byte changed", func(e []string) []string { e[5] = strings.Replace(e[5], `" `, `"_`, 1); return e }, "corrupt stream"},
		{
			"another answer's chunk", func(e []string) []string { e[4] = strings.Replace(e[4], "chatcmpl-", "chatcmpl-x", 1); return e },
			"corrupt stream",
		},
		{"no finish reason", func(e []string) []string { return slices.Delete(e, 11, 12) }, "incomplete stream"},
		{"no usage", func(e []string) []string { return slices.Delete(e, 12, 13) }, "incomplete stream"},
		{"no end", func(e []string) []string { return e[:13] }, "incomplete stream"},
		{"cut off", func(e []string) []string { return append(e[:6], e[6][:20]) }, "broken connection"},
		{"text behind the finish reason", func(e []string) []string { e[10], e[11] = e[11], e[10]; return e }, "corrupt stream"},
		{"more behind the end", func(e []string) []string { return append(e, e[3]) }, "corrupt stream"},
		{"an error", func(e []string) []string { e[7] = "data: {\"error\":\"out of memory\"}\n\n"; return e }, "error in stream"},
		{"half a chunk", func(e []string) []string { e[7] = e[7][:30] + "\n\n"; return e }, "malformed chunk"},
		{"nothing at all", func([]string) []string { return nil }, "incomplete stream"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			target, stop := serve(t, tampered(tt.change))
			defer stop()
			got, err := httpload.Streams(t.Context(), httpload.StreamsConfig{Target: target, Bodies: streamBodies(t, 10), Streams: 3, Tokens: 10})
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == "" {
				if got.Intact != 3 || len(got.Errors) > 0 {
					t.Errorf("%+v", got)
				}
				return
			}
			if got.Intact != 0 || len(got.Errors) != 1 || got.Errors[0].What != tt.want || got.Errors[0].Count != 3 || got.Errors[0].First == "" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestSwappedAnswers: two clients that get each other's answers notice.
func TestSwappedAnswers(t *testing.T) {
	engine := upstream.New(upstream.Options{})
	target, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text := strings.NewReplacer(`"seed":0}`, `"seed":1}`, `"seed":1}`, `"seed":0}`).Replace(string(body))
		r.Body = io.NopCloser(strings.NewReader(text))
		engine.ServeHTTP(w, r)
	})
	defer stop()
	got, err := httpload.Streams(t.Context(), httpload.StreamsConfig{Target: target, Bodies: streamBodies(t, 4), Streams: 2})
	if err != nil || got.Intact != 0 || got.Errors[0].What != "corrupt stream" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestAnyOtherTextIsCorrupt: of all texts, in pieces of any length, only the right one passes.
func TestAnyOtherTextIsCorrupt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Int64Range(-2_000_000, 2_000_000).Draw(t, "seed")
		n := rapid.IntRange(1, 30).Draw(t, "tokens")
		var words []string
		for i := range n {
			words = append(words, upstream.Number(seed, i))
		}
		right := strings.Join(words, " ")
		text := right
		switch rapid.IntRange(0, 3).Draw(t, "damage") {
		case 1:
			i := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			text = text[:i] + text[i+1:]
		case 2:
			i := rapid.IntRange(0, len(text)).Draw(t, "at")
			text = text[:i] + rapid.SampledFrom([]string{"0", "7", " "}).Draw(t, "more") + text[i:]
		case 3:
			text = strings.Join(rapid.Permutation(words).Draw(t, "order"), " ")
		}
		var b strings.Builder
		for rest := text; rest != ""; {
			cut := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			fmt.Fprintf(&b, `data: {"id":"x","choices":[{"delta":{"content":%q}}]}`+"\n\n", rest[:cut])
			rest = rest[cut:]
		}
		fmt.Fprintf(&b, `data: {"id":"x","choices":[{"finish_reason":"stop"}],"usage":{"completion_tokens":%d}}`+"\n\ndata: [DONE]\n\n", n)
		problem := httpload.CheckStream(strings.NewReader(b.String()), seed, n)
		if (problem == "") != (text == right) {
			t.Fatalf("%q for %q: %q", text, right, problem)
		}
	})
}

// TestHalfAToken: a token that arrived in part is not complete, even if the usage agrees.
func TestHalfAToken(t *testing.T) {
	for text, want := range map[string]string{"10 11": "", "10 11 ": "incomplete stream", "10 11 1": "incomplete stream"} {
		body := fmt.Sprintf("data: {\"choices\":[{\"text\":%q,\"finish_reason\":\"stop\"}],\"usage\":{\"completion_tokens\":2}}\n\ndata: "+
			"[DONE]\n\n", text)
		if got := httpload.CheckStream(strings.NewReader(body), 10, 0); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestStreamsFail: refusals, servers that do not stream, and those that never end.
func TestStreamsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, h := range map[string]http.HandlerFunc{
			"status 503":     func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) },
			"corrupt stream": answersAfter(0),
			"timeout":        upstream.New(upstream.Options{TokenDelay: time.Hour}).ServeHTTP,
		} {
			target, stop := serve(t, h)
			got, err := httpload.Streams(t.Context(),
				httpload.StreamsConfig{Target: target, Bodies: streamBodies(t, 3), Streams: 4, Opening: 1, Timeout: time.Minute})
			if err != nil || got.Intact != 0 || len(got.Errors) != 1 || got.Errors[0].What != want || got.Errors[0].Count != 4 {
				t.Errorf("want %s: %+v, %v", want, got, err)
			}
			stop()
		}
	})
}

func TestStreamsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target, stop := serve(t, hang)
		defer stop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := httpload.Streams(ctx, httpload.StreamsConfig{Target: target, Bodies: streamBodies(t, 3), Streams: 4, Opening: 2})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
	if _, err := httpload.Streams(t.Context(), httpload.StreamsConfig{}); err == nil {
		t.Error("no error for nothing to do")
	}
}
