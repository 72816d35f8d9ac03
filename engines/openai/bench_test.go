package openai

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/base/sse"
)

// recorded is a stream of n pieces in the shape that vLLM sends.
func recorded(n int) []byte {
	var b bytes.Buffer
	for range n {
		b.WriteString(`data: {"id":"chatcmpl-req-abc123","object":"chat.completion.chunk","created":1760000000,"model":"llama","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null,"token_ids":null}]}` + "\n\n")
	}
	b.WriteString(`data: {"id":"chatcmpl-req-abc123","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n")
	b.WriteString(`data: {"id":"chatcmpl-req-abc123","choices":[],"usage":{"prompt_tokens":640,"completion_tokens":100,"prompt_tokens_details":{"cached_tokens":608}}}` + "\n\ndata: [DONE]\n\n")
	return b.Bytes()
}

// replay is a transport that answers every request with the same stream.
type replay struct{ stream []byte }

func (r replay) RoundTrip(request *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, request.Body)
	_ = request.Body.Close()
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"text/event-stream"}},
		Body:       io.NopCloser(bytes.NewReader(r.stream)),
		Request:    request,
	}, nil
}

func BenchmarkEvents(b *testing.B) {
	stream := recorded(100)
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		events := sse.NewReader(bufio.NewReaderSize(bytes.NewReader(stream), 8<<10), DefaultMaxEventBytes)
		for {
			if _, err := events.Next(); err != nil {
				break
			}
		}
	}
}

// BenchmarkStream is the reading of an answer, without HTTP.
func BenchmarkStream(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("pieces=%d", n), func(b *testing.B) {
			stream := recorded(n)
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			for b.Loop() {
				a := answer{now: time.Now, limit: DefaultMaxAnswerBytes, onText: func(string) error { return nil }}
				r := bufio.NewReaderSize(bytes.NewReader(stream), 8<<10)
				if err := a.readStream(context.Background(), sse.NewReader(r, DefaultMaxEventBytes)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// benchmarkRequest has a prompt of 32 KiB, about 8,000 tokens.
func benchmarkRequest() engines.Request {
	return engines.Request{ID: "req-abc123", Messages: []engines.Message{
		{Role: engines.System, Content: "Answer from the passages."},
		{Role: engines.User, Content: strings.Repeat("All about <tides>. ", 32<<10/19)},
	}}
}

func replaying(b *testing.B, pieces int) *Engine {
	b.Helper()
	engine, err := New(Config{BaseURL: "http://fake", HTTPClient: &http.Client{Transport: replay{recorded(pieces)}}})
	if err != nil {
		b.Fatal(err)
	}
	return engine
}

// BenchmarkGenerate is a whole call on a transport that costs nothing.
func BenchmarkGenerate(b *testing.B) {
	engine, request := replaying(b, 100), benchmarkRequest()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := engine.Generate(context.Background(), request, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGenerateParallel(b *testing.B) {
	engine, request := replaying(b, 100), benchmarkRequest()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := engine.Generate(context.Background(), request, nil); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkPrepare(b *testing.B) {
	engine, request := replaying(b, 1), benchmarkRequest()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := engine.prepare(request); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCountCached is a Count that finds its text in the cache.
func BenchmarkCountCached(b *testing.B) {
	tokenizer, err := replaying(b, 1).Tokenizer(TokenizerConfig{})
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat("All about tides. ", 120)
	tokenizer.cache.put(tokenizer.cache.key(text), 480)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			tokenizer.Count(text)
		}
	})
}

// TestEventAllocations: splitting a stream into events must not allocate per event.
func TestEventAllocations(t *testing.T) {
	stream := recorded(1000)
	got := testing.AllocsPerRun(10, func() {
		events := sse.NewReader(bufio.NewReaderSize(bytes.NewReader(stream), 8<<10), DefaultMaxEventBytes)
		for {
			if _, err := events.Next(); err != nil {
				break
			}
		}
	})
	if got > 10 {
		t.Errorf("%v allocations for 1000 events", got)
	}
}
