package openai_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/embeddings"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/embed/openai"
)

// Any embedder of langchaingo's is one of ours, and ours is one of theirs.
var (
	_ embed.Embedder      = (*embeddings.EmbedderImpl)(nil)
	_ embed.Embedder      = embeddings.Embedder(nil)
	_ embeddings.Embedder = (*openai.Embedder)(nil)
)

func TestVectors(t *testing.T) {
	for _, encoding := range []openai.Encoding{"", openai.Base64, openai.Float} {
		t.Run(string(encoding), func(t *testing.T) {
			f := newFake(t)
			f.scramble = true
			e := embedder(t, f, func(o *openai.Options) { o.Encoding, o.Model, o.Key, o.Dimensions = encoding, "m", "secret", 5 })
			texts := []string{"one", "", "three"}
			vectors, err := e.EmbedDocuments(t.Context(), texts)
			if err != nil {
				t.Fatal(err)
			}
			for i, text := range texts {
				if !slices.Equal(vectors[i], want(text, 5)) {
					t.Errorf("%q: %v", text, vectors[i])
				}
			}
			asked := f.asked[0]
			if asked.Model != "m" || asked.Dimensions != 5 || !slices.Equal(asked.Input, texts) || asked.Encoding == "" {
				t.Errorf("asked %+v", asked)
			}
			if got := f.headers[0].Get("Authorization"); got != "Bearer secret" {
				t.Errorf("Authorization = %q", got)
			}
			if e.Name() != "m-5" {
				t.Errorf("name %q", e.Name())
			}
		})
	}
}

// TestAddress: a server's address without a path means its /v1.
func TestAddress(t *testing.T) {
	for _, path := range []string{"", "/", "/v1", "/v1/"} {
		f := newFake(t)
		e := embedder(t, f, func(o *openai.Options) { o.URL = f.URL + path })
		if _, err := e.EmbedQuery(t.Context(), "a"); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestBatches(t *testing.T) {
	f := newFake(t)
	e := embedder(t, f, func(o *openai.Options) { o.Batch, o.BatchBytes, o.DocumentPrefix, o.QueryPrefix = 3, 20, "d:", "q:" })
	texts := []string{"a", "b", "c", "d", strings.Repeat("e", 12), "ffff", strings.Repeat("g", 50), "h"}
	vectors, err := e.EmbedDocuments(t.Context(), texts)
	if err != nil || len(vectors) != len(texts) {
		t.Fatal(len(vectors), err)
	}
	if _, err := e.EmbedQuery(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if none, err := e.EmbedDocuments(t.Context(), nil); err != nil || len(none) != 0 {
		t.Errorf("nothing: %v, %v", none, err)
	}
	var got [][]string
	for _, b := range f.asked {
		got = append(got, b.Input)
	}
	want := [][]string{{"d:a", "d:b", "d:c"}, {"d:d", "d:" + texts[4]}, {"d:ffff"}, {"d:" + texts[6]}, {"d:h"}, {"q:a"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Each way to refuse has its own error, and a request is repeated only if that may help. No error has the key.
func TestRefused(t *testing.T) {
	const key = "sk-very-secret"
	for _, c := range []struct {
		name, body string
		status     int
		want       error
		requests   int
	}{
		{"wrong key", `{"error":{"message":"Incorrect API key provided: ` + key + `","code":"invalid_api_key"}}`, 401, openai.ErrUnauthorized, 1},
		{"forbidden", `no`, 403, openai.ErrUnauthorized, 1},
		{"no model", `{"error":{"message":"The model does not exist","code":"model_not_found"}}`, 404, openai.ErrNoModel, 1},
		{"no model, as 400", `{"error":{"message":"unknown","code":"model_not_found"}}`, 400, openai.ErrNoModel, 1},
		{"no embeddings (llama.cpp)", `{"error":{"code":501,"message":"This server does not support embeddings. Start it with ` +
			"`--embeddings`" + `","type":"not_supported_error"}}`, 501, openai.ErrNoModel, 1},
		{"too long (vLLM)", `{"error":{"message":"This model's maximum context length is 512 tokens","code":400}}`, 400, openai.ErrTooLong, 1},
		{"too long (llama.cpp)", `{"error":{"code":500,"message":"input (9000 tokens) is too large to process. increase the physical ` +
			`batch size","type":"server_error"}}`, 500, openai.ErrTooLong, 1},
		{"too long (llama.cpp, context)", `{"error":{"code":400,"message":"request (9000 tokens) exceeds the available context size ` +
			`(512 tokens), try increasing it","type":"exceed_context_size_error"}}`, 400, openai.ErrTooLong, 1},
		{"too large", ``, 413, openai.ErrTooLong, 1},
		{"bad dimensions", `{"detail":"Model does not support matryoshka representation"}`, 400, openai.ErrRefused, 1},
		{"busy", `{"message":"slow down"}`, 429, openai.ErrUnavailable, 3},
		{"broken", `<html>` + key, 500, openai.ErrUnavailable, 3},
		{"starting", `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, 503, openai.ErrUnavailable, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t, slices.Repeat([]func(http.ResponseWriter){says(c.status, c.body)}, 5)...)
			e := embedder(t, f, func(o *openai.Options) { o.Key, o.MaxWait = key, time.Millisecond })
			_, err := e.EmbedDocuments(t.Context(), []string{"a"})
			if status, ok := errors.AsType[*openai.StatusError](err); !errors.Is(err, c.want) || !ok || status.Status != c.status {
				t.Errorf("err = %v, want %v", err, c.want)
			}
			if len(f.asked) != c.requests {
				t.Errorf("%d requests, want %d", len(f.asked), c.requests)
			}
			if strings.Contains(err.Error(), key) {
				t.Errorf("the key is in %q", err)
			}
		})
	}
}

// transport is a fake of the network, for tests with fake time.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func response(status int, text string, header ...string) *http.Response {
	w := &http.Response{StatusCode: status, Header: http.Header{}, Body: readCloser{strings.NewReader(text)}}
	for i := 0; i < len(header); i += 2 {
		w.Header.Set(header[i], header[i+1])
	}
	return w
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

const one = `{"data":[{"embedding":[1,2]}]}`

func TestRetries(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		name     string
		first    func() (*http.Response, error)
		ok       bool
		atLeast  time.Duration
		requests int
	}{
		{
			"after the time asked for", func() (*http.Response, error) { return response(429, "", "Retry-After", "7"), nil }, true,
			7 * time.Second, 2,
		},
		{"not if that is too long", func() (*http.Response, error) { return response(503, "", "Retry-After", "3600"), nil }, false, 0, 1},
		{"if the connection is refused", func() (*http.Response, error) { return nil, refused }, true, 100 * time.Millisecond, 2},
		{"not if the connection breaks", func() (*http.Response, error) { return nil, errors.New("connection reset") }, false, 0, 1},
		{"not if the answer is nonsense", func() (*http.Response, error) { return response(200, "{"), nil }, false, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				client := &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
					if n++; n == 1 {
						return c.first()
					}
					return response(200, one), nil
				})}
				e, err := openai.New(openai.Options{URL: "http://user:secret@server/v1?key=secret", Client: client})
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				_, err = e.EmbedQuery(t.Context(), "a")
				if (err == nil) != c.ok || n != c.requests || time.Since(start) < c.atLeast {
					t.Errorf("err = %v after %v and %d requests", err, time.Since(start), n)
				}
				if err != nil && strings.Contains(err.Error(), "secret") {
					t.Errorf("a secret is in %q", err)
				}
			})
		})
	}
}

// No call waits longer than the context or the timeout allow.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}
		e, err := openai.New(openai.Options{URL: "http://server/v1", Client: hangs, Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := e.EmbedQuery(t.Context(), "a"); !errors.Is(err, openai.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(start) != time.Second {
			t.Errorf("err = %v after %v", err, time.Since(start))
		}
		reason := errors.New("reason")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, reason)
		defer cancel()
		if _, err := e.EmbedQuery(ctx, "a"); !errors.Is(err, reason) || errors.Is(err, openai.ErrUnavailable) {
			t.Errorf("err = %v", err)
		}
		busy := &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
			return response(503, "", "Retry-After", "10"), nil
		})}
		if e, err = openai.New(openai.Options{URL: "http://server/v1", Client: busy}); err != nil {
			t.Fatal(err)
		}
		start = time.Now()
		ctx, cancel = context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := e.EmbedQuery(ctx, "a"); !errors.Is(err, openai.ErrUnavailable) || time.Since(start) != 0 {
			t.Errorf("err = %v after %v, want the server's own at once", err, time.Since(start))
		}
	})
}

// What is no answer to the request is an error and never a wrong vector.
func TestBadAnswers(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       error
	}{
		{"no JSON", `vectors`, openai.ErrBadAnswer},
		{"no data", `{}`, embed.ErrCount},
		{"too few", `{"data":[{"index":0,"embedding":[1]}]}`, embed.ErrCount},
		{"too many", `{"data":[{"embedding":[1]},{"embedding":[1]},{"embedding":[1]}]}`, embed.ErrCount},
		{"twice the same", `{"data":[{"index":1,"embedding":[1]},{"index":1,"embedding":[1]}]}`, openai.ErrBadAnswer},
		{"an index too large", `{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}`, openai.ErrBadAnswer},
		{"two lengths", `{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[1]}]}`, embed.ErrDimension},
		{"empty", `{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]}`, openai.ErrBadAnswer},
		{"null", `{"data":[{"index":0,"embedding":null},{"index":1,"embedding":null}]}`, openai.ErrBadAnswer},
		{"missing", `{"data":[{"index":0},{"index":1}]}`, openai.ErrBadAnswer},
		{"no base64", `{"data":[{"embedding":"!"},{"embedding":"!"}]}`, openai.ErrBadAnswer},
		{"a part of a number", `{"data":[{"embedding":"AAAAAAA="},{"embedding":"AAAAAAA="}]}`, openai.ErrBadAnswer},
		{"NaN", `{"data":[{"embedding":"AADAfw=="},{"embedding":"AADAfw=="}]}`, openai.ErrBadAnswer},
		{"beyond 32 bits", `{"data":[{"embedding":[1e39]},{"embedding":[1e39]}]}`, openai.ErrBadAnswer},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t, says(200, c.body))
			if v, err := embedder(t, f, nil).EmbedDocuments(t.Context(), []string{"a", "b"}); !errors.Is(err, c.want) {
				t.Errorf("%v, %v; want %v", v, err, c.want)
			}
			if len(f.asked) != 1 {
				t.Errorf("%d requests", len(f.asked))
			}
		})
	}
	f := newFake(t, nil, says(200, `{"data":[{"embedding":[1]}]}`))
	if _, err := embedder(t, f, func(o *openai.Options) { o.Batch = 1 }).EmbedDocuments(t.Context(), []string{"a", "b"}); !errors.Is(
		err,
		embed.ErrDimension,
	) {
		t.Errorf("another length in the second batch: %v", err)
	}
	f = newFake(t, says(200, one))
	_, err := embedder(t, f, func(o *openai.Options) { o.Dimensions = 3 }).EmbedQuery(t.Context(), "a")
	if dimension, ok := errors.AsType[*embed.DimensionError](err); !ok || dimension.Want != 3 || dimension.Got != 2 {
		t.Errorf("another length than asked for: %v", err)
	}
}

func TestOptions(t *testing.T) {
	for want, opts := range map[string]openai.Options{
		"Options.URL is not an http":           {},
		"Options.URL is not an http or https":  {URL: "file:///secret"},
		"Options.Encoding = \"x\"":             {URL: "http://a", Encoding: "x"},
		"Options.Batch = -1, want at least 0":  {URL: "http://a", Batch: -1},
		"Options.Attempts = -1, want at least": {URL: "http://a", Attempts: -1},
		"Options.Key has a line break":         {URL: "http://a", Key: "secret\n"},
	} {
		if _, err := openai.New(opts); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("err = %v, want %q", err, want)
		}
	}
	if _, err := openai.New(openai.Options{URL: "http://a", Timeout: -1}); err != nil {
		t.Error(err)
	}
}

// FuzzAnswer: whatever a server answers, the result is an error or as many vectors as texts, all of one length.
func FuzzAnswer(f *testing.F) {
	f.Add(one)
	f.Add(`{"data":[{"index":0,"embedding":"AACAPw=="}]}`)
	f.Add(`{"error":"x"}`)
	f.Fuzz(func(t *testing.T, text string) {
		client := &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) { return response(200, text), nil })}
		e, err := openai.New(openai.Options{URL: "http://server", Client: client})
		if err != nil {
			t.Fatal(err)
		}
		vectors, err := e.EmbedDocuments(t.Context(), []string{"a", "b"})
		if err == nil && (len(vectors) != 2 || len(vectors[0]) == 0 || len(vectors[0]) != len(vectors[1])) {
			t.Fatalf("%q: %v", text, vectors)
		}
	})
}

func BenchmarkEmbedDocuments(b *testing.B) {
	f := newFake(b)
	texts := slices.Repeat([]string{strings.Repeat("words ", 60)}, 64)
	for _, encoding := range []openai.Encoding{openai.Base64, openai.Float} {
		b.Run(string(encoding), func(b *testing.B) {
			e := embedder(b, f, func(o *openai.Options) { o.Encoding, o.Dimensions = encoding, 384 })
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.EmbedDocuments(b.Context(), texts); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
