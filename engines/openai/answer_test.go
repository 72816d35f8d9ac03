package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
)

const (
	sse       = "text/event-stream"
	finishing = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}` + "\n\n"
)

// TestAnswers: bodies as servers send them, and what they mean.
func TestAnswers(t *testing.T) {
	cases := []struct {
		name, kind, body string
		pieces           []string
		finish, id       string
		usage            engines.Usage
		choices          string
	}{
		{
			name: "vLLM",
			kind: sse + "; charset=utf-8",
			body: `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant",` +
				`"content":""},"logprobs":null,"finish_reason":null}]}` + "\n\n" +
				`data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"Be"},"finish_reason":null}]}` + "\n\n" +
				`data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"cause"},"finish_reason":"stop","stop_reason":null}]}` + "\n\n" +
				`data: {"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":384,"total_tokens":386,"completion_tokens":2,` +
				`"prompt_tokens_details":{"cached_tokens":352,"created_cache_tokens":null,"multimodal_tokens":null}}}` + "\n\n" +
				"data: [DONE]\n\n",
			pieces: []string{"Be", "cause"}, finish: "stop", id: "chatcmpl-1",
			usage: engines.Usage{PromptTokens: 384, OutputTokens: 2, CachedTokens: 352, CachedKnown: true},
		},
		{
			name: "vLLM without token details",
			kind: sse,
			body: `data: {"id":"c","choices":[{"index":0,"delta":{"content":"x"}}]}` + "\n\n" + finishing +
				`data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1,"prompt_tokens_details":null}}` + "\n\ndata: [DONE]\n\n",
			pieces: []string{"x"}, finish: "length", id: "c",
			usage: engines.Usage{PromptTokens: 9, OutputTokens: 1},
		},
		{
			name: "a reported zero is known",
			kind: sse,
			body: finishing + `data: {"id":"c","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1,` +
				`"prompt_tokens_details":{"cached_tokens":0}}}` + "\n\ndata: [DONE]\n\n",
			id: "c", finish: "length",
			usage: engines.Usage{PromptTokens: 9, OutputTokens: 1, CachedKnown: true},
		},
		{
			name: "running totals: the last counts",
			kind: sse,
			body: `data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":1}}` + "\n\n" +
				`data: {"id":"c","choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,` +
				`"completion_tokens":2}}` + "\n\ndata: [DONE]\n\n",
			pieces: []string{"a", "b"}, finish: "stop", id: "c",
			usage: engines.Usage{PromptTokens: 9, OutputTokens: 2},
		},
		{
			name: "llama.cpp: timings in place of usage",
			kind: sse,
			body: `data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n" +
				`data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"timings":{"cache_n":900,"prompt_n":100,` +
				`"prompt_ms":151.2,"predicted_n":7}}` + "\n\ndata: [DONE]\n\n",
			pieces: []string{"a"}, finish: "stop", id: "c",
			usage: engines.Usage{PromptTokens: 1000, OutputTokens: 7, CachedTokens: 900, CachedKnown: true},
		},
		{
			name: "usage wins over timings",
			kind: sse,
			body: finishing + `data: {"id":"c","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":3,` +
				`"prompt_tokens_details":{"cached_tokens":8}},"timings":{"cache_n":1,"prompt_n":1,"predicted_n":1}}` + "\n\ndata: [DONE]\n\n",
			id: "c", finish: "length",
			usage: engines.Usage{PromptTokens: 10, OutputTokens: 3, CachedTokens: 8, CachedKnown: true},
		},
		{
			name: "counts that make no sense are cut to sense",
			kind: sse,
			body: finishing + `data: {"id":"c","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":-3,` +
				`"prompt_tokens_details":{"cached_tokens":80}}}` + "\n\ndata: [DONE]\n\n",
			id: "c", finish: "length",
			usage: engines.Usage{PromptTokens: 10, CachedTokens: 10, CachedKnown: true},
		},
		{
			name: "unreadable usage does not cost the answer",
			kind: sse,
			body: `data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}],"usage":"many"}` + "\n\ndata: [DONE]\n\n",
			id:   "c", finish: "stop", pieces: []string{"a"},
		},
		{
			name: "reasoning is not text",
			kind: sse,
			body: `data: {"id":"c","choices":[{"index":0,"delta":{"content":null,"reasoning_content":"hm"}}]}` + "\n\n" +
				`data: {"id":"c","choices":[{"index":0,"delta":{"reasoning":"so"}}]}` + "\n\n" +
				`data: {"id":"c","choices":[{"index":0,"delta":{"content":"yes"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
			pieces: []string{"yes"}, finish: "stop", id: "c",
		},
		{
			name: "only the first choice",
			kind: sse,
			body: `data: {"id":"c","choices":[{"index":1,"delta":{"content":"B"},"finish_reason":"stop"},{"index":0,` +
				`"delta":{"content":"A"},"finish_reason":"length"}]}` + "\n\ndata: [DONE]\n\n",
			pieces: []string{"A"}, finish: "length", id: "c",
		},
		{
			name: "CRLF, comments, other fields, data over lines, no space after the colon",
			kind: sse,
			body: ": ping\r\n\r\nevent: message\r\nid: 7\r\nretry: " +
				"10\r\ndata:{\"id\":\"c\",\r\ndata:\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\r\ndata: \"finish_reason\":\"stop\"}]}\r\n\r\ndata: [DONE]\r\n\r\n",
			pieces: []string{"a"}, finish: "stop", id: "c",
		},
		{
			name:   "no [DONE], but a finish reason",
			kind:   sse,
			body:   `data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}` + "\n\n",
			pieces: []string{"a"}, finish: "stop", id: "c",
		},
		{
			name:   "cut off after the finish reason",
			kind:   sse,
			body:   `data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}` + "\n\n" + `data: {"id":"c","cho`,
			pieces: []string{"a"}, finish: "stop", id: "c",
		},
		{
			name:   "no blank line at the end",
			kind:   sse,
			body:   `data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\ndata: [DONE]",
			pieces: []string{"a"}, id: "c",
		},
		{
			name: "a server that does not stream",
			kind: "application/json",
			body: `{"id":"chatcmpl-9","choices":[{"index":0,"message":{"role":"assistant","content":"Because.",` +
				`"reasoning_content":"hm"},"finish_reason":"stop"}],"usage":{"prompt_tokens":4,"completion_tokens":2}}`,
			pieces: []string{"Because."}, finish: "stop", id: "chatcmpl-9",
			usage:   engines.Usage{PromptTokens: 4, OutputTokens: 2},
			choices: `[{"index":0,"message":{"role":"assistant","content":"Because.","reasoning_content":"hm"},"finish_reason":"stop"}]`,
		},
		{
			name: "two choices and a tool, not streamed",
			kind: "application/json",
			body: `{"id":"c","choices":[{"index":0,"message":{"content":null,"tool_calls":[{"id":"t"}]},"finish_reason":"tool_calls"},` +
				`{"index":1,"message":{"content":"b"}}]}`,
			finish: "tool_calls", id: "c",
			choices: `[{"index":0,"message":{"content":null,"tool_calls":[{"id":"t"}]},"finish_reason":"tool_calls"},` +
				`{"index":1,"message":{"content":"b"}}]`,
		},
		{
			name:   "the same with a wrong content type",
			kind:   "text/plain",
			body:   `{"id":"chatcmpl-9","choices":[{"index":0,"message":{"content":"Because."},"finish_reason":"stop"}]}`,
			pieces: []string{"Because."}, finish: "stop", id: "chatcmpl-9",
			choices: `[{"index":0,"message":{"content":"Because."},"finish_reason":"stop"}]`,
		},
		{
			name:   "a stream with a wrong content type",
			kind:   "text/plain",
			body:   `data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\ndata: [DONE]\n\n",
			pieces: []string{"a"}, id: "c",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, engine := startFake(t, answers(http.StatusOK, c.kind, c.body), nil)
			var pieces []string
			got, err := engine.Generate(t.Context(), question(""), func(p string) error {
				pieces = append(pieces, p)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			got.TTFT, got.Total = 0, 0
			want := engines.Response{ID: c.id, Text: strings.Join(c.pieces, ""), Finish: c.finish, Usage: c.usage}
			if c.choices != "" {
				want.Choices = json.RawMessage(c.choices)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.pieces, pieces); diff != "" {
				t.Errorf("pieces (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPiecesAreNotHeldBack: a piece reaches the caller while the server is still at the next one.
func TestPiecesAreNotHeldBack(t *testing.T) {
	seen := make(chan string)
	_, engine := startFake(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		for _, text := range []string{"a", "b", "c"} {
			send(w, piece(text))
			if got := <-seen; got != text {
				t.Errorf("caller saw %q, want %q", got, text)
			}
		}
		send(w, stop, usage, "[DONE]")
	}, nil)
	_, err := engine.Generate(t.Context(), question("a"), func(p string) error {
		seen <- p
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTimes: TTFT and Total come from the configured clock, which is read at the start, at the first piece and at
// the end.
func TestTimes(t *testing.T) {
	now := time.Unix(1000, 0)
	_, engine := startFake(t, streams(piece("a"), piece("b"), stop, usage), func(c *openai.Config) {
		c.Now = func() time.Time {
			now = now.Add(time.Second)
			return now
		}
	})
	got, err := engine.Generate(t.Context(), question("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.TTFT != time.Second || got.Total != 2*time.Second {
		t.Errorf("TTFT %v, Total %v", got.TTFT, got.Total)
	}
}

func TestServedEvent(t *testing.T) {
	scope := contextpilot.Scope{Model: "m", Replica: "r"}
	_, engine := startFake(t, streams(piece("a"), stop, usage), func(c *openai.Config) { c.Scope = scope })
	var got []contextpilot.Event
	cancel := engine.Subscribe(func(events ...contextpilot.Event) { got = append(got, events...) })
	defer cancel()
	if _, err := engine.Generate(t.Context(), question("req-7"), nil); err != nil {
		t.Fatal(err)
	}
	want := []contextpilot.Event{{
		Kind: contextpilot.Served, Scope: scope, Request: "req-7", Tokens: 16, CachedKnown: true, Prompt: 20, Output: 2,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events when Generate has returned (-want +got):\n%s", diff)
	}
}

// TestSinkMayUnsubscribe: a sink that ends its own subscription does not hang.
func TestSinkMayUnsubscribe(t *testing.T) {
	_, engine := startFake(t, streams(piece("a"), stop, usage), nil)
	calls := 0
	var cancel func()
	cancel = engine.Subscribe(func(...contextpilot.Event) {
		calls++
		cancel()
	})
	for range 2 {
		if _, err := engine.Generate(t.Context(), question(""), nil); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 1 {
		t.Errorf("%d calls", calls)
	}
}

// TestConnectionIsKept: an answer that was read to its end leaves a connection for the next request.
func TestConnectionIsKept(t *testing.T) {
	addresses := map[string]bool{}
	_, engine := startFake(t, func(w http.ResponseWriter, r *http.Request, n int) {
		addresses[r.RemoteAddr] = true
		streams(piece("a"), stop, usage)(w, r, n)
	}, nil)
	for range 5 {
		if _, err := engine.Generate(t.Context(), question(""), nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(addresses) != 1 {
		t.Errorf("%d connections for 5 requests one after the other", len(addresses))
	}
}

// TestCancellationReachesServer: the server sees the end of a request that the caller cancels or stops.
func TestCancellationReachesServer(t *testing.T) {
	enough := errors.New("enough")
	cases := []struct {
		name   string
		onText func(cancel context.CancelFunc) error
		want   error
	}{
		{"cancelled", func(cancel context.CancelFunc) error { cancel(); return nil }, context.Canceled},
		{"stopped", func(context.CancelFunc) error { return enough }, enough},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			gone := make(chan struct{})
			f, engine := startFake(t, func(w http.ResponseWriter, r *http.Request, _ int) {
				send(w, piece("a"))
				<-r.Context().Done()
				close(gone)
			}, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			got, err := engine.Generate(ctx, question("a"), func(string) error { return c.onText(cancel) })
			if !errors.Is(err, c.want) || !errors.Is(err, engines.ErrInterrupted) {
				t.Errorf("error %v", err)
			}
			if got.Text != "a" || got.ID != "a" {
				t.Errorf("response %+v", got)
			}
			<-gone
			if n := len(f.requests()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}
