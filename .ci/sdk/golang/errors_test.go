package golang_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/ragpilot/ragpilot/ci/sdk/stage"
)

// caller asks one of the APIs, with as many retries as given.
type caller struct {
	ask    func(ctx context.Context, p place, model string, retries int) error
	stream func(ctx context.Context, p place, model string) (events int, err error)
}

var callers = map[string]caller{
	"openai chat": {
		func(ctx context.Context, p place, model string, retries int) error {
			client := p.openai(openaioption.WithMaxRetries(retries))
			_, err := client.Chat.Completions.New(ctx, question(model))
			return err
		},
		func(ctx context.Context, p place, model string) (n int, err error) {
			client := p.openai(openaioption.WithMaxRetries(0))
			stream := client.Chat.Completions.NewStreaming(ctx, question(model))
			defer stream.Close()
			for stream.Next() {
				n++
			}
			return n, stream.Err()
		},
	},
	"openai responses": {
		func(ctx context.Context, p place, model string, retries int) error {
			client := p.openai(openaioption.WithMaxRetries(retries))
			_, err := client.Responses.New(ctx, responseQuestion(model))
			return err
		},
		func(ctx context.Context, p place, model string) (n int, err error) {
			client := p.openai(openaioption.WithMaxRetries(0))
			stream := client.Responses.NewStreaming(ctx, responseQuestion(model))
			defer stream.Close()
			for stream.Next() {
				n++
			}
			return n, stream.Err()
		},
	},
	"anthropic": {
		func(ctx context.Context, p place, model string, retries int) error {
			client := p.anthropic(anthropicoption.WithMaxRetries(retries))
			_, err := client.Messages.New(ctx, message(model))
			return err
		},
		func(ctx context.Context, p place, model string) (n int, err error) {
			client := p.anthropic(anthropicoption.WithMaxRetries(0))
			stream := client.Messages.NewStreaming(ctx, message(model))
			defer stream.Close()
			for stream.Next() {
				n++
			}
			return n, stream.Err()
		},
	},
}

// typed shows an error by its type and what it carries.
func typed(err error) string {
	if e, ok := errors.AsType[*openai.Error](err); ok {
		return fmt.Sprintf("openai.Error %d %s %s %s %s %s request %s, retry after %q", e.StatusCode, e.Code, e.Type, e.Param, e.Message, e.RawJSON(), e.Response.Header.Get("X-Request-Id"), e.Response.Header.Get("Retry-After"))
	}
	if e, ok := errors.AsType[*anthropic.Error](err); ok {
		return fmt.Sprintf("anthropic.Error %d %s %s request %s, retry after %q", e.StatusCode, e.Type(), e.RawJSON(), e.RequestID, e.Response.Header.Get("Retry-After"))
	}
	if e, ok := errors.AsType[*ssestream.StreamError](err); ok {
		return "ssestream.StreamError " + e.Message
	}
	return fmt.Sprintf("%T %v", err, err)
}

func status(err error) int {
	if e, ok := errors.AsType[*openai.Error](err); ok {
		return e.StatusCode
	}
	if e, ok := errors.AsType[*anthropic.Error](err); ok {
		return e.StatusCode
	}
	return 0
}

func TestErrors(t *testing.T) {
	for _, api := range slices.Sorted(maps.Keys(callers)) {
		c := callers[api]
		t.Run(api+": 400, 401, 403, 404, 422, 429, 500 and 529 have the SDK's type, streamed or not", func(t *testing.T) {
			untouchedAlike(t, func(t *testing.T, p place) (out []string) {
				for _, code := range []int{400, 401, 403, 404, 422, 429, 500, 529} {
					err := c.ask(patient(t), p, fmt.Sprintf("%d/text", code), 0)
					_, streamErr := c.stream(patient(t), p, fmt.Sprintf("%d/text", code))
					if status(err) != code || status(streamErr) != code {
						t.Errorf("got %s, streamed %s", typed(err), typed(streamErr))
					}
					out = append(out, typed(err), typed(streamErr))
				}
				return out
			})
		})
		t.Run(api+": 429, Retry-After, then the answer", func(t *testing.T) {
			p := at(t, stage.Sidecar)
			ok(t, c.ask(patient(t), p, "once-429/text", 2))
			sent := p.sent()
			if len(sent) != 2 {
				t.Fatalf("%d requests, want 2", len(sent))
			}
			// Without the header the SDKs wait at most half a second.
			if gap := sent[1].At.Sub(sent[0].At); gap < 950*time.Millisecond || sent[1].Header.Get("X-Stainless-Retry-Count") != "1" {
				t.Errorf("asked again after %v, retry %s", gap, sent[1].Header.Get("X-Stainless-Retry-Count"))
			}
		})
		t.Run(api+": 500, then the answer", func(t *testing.T) {
			p := at(t, stage.Sidecar)
			if ok(t, c.ask(patient(t), p, "once-500/text", 2)); len(p.sent()) != 2 {
				t.Errorf("%d requests, want 2", len(p.sent()))
			}
		})
		t.Run(api+": X-Should-Retry: false", func(t *testing.T) {
			p := at(t, stage.Sidecar)
			if err := c.ask(patient(t), p, "529/text", 2); status(err) != 529 || len(p.sent()) != 1 {
				t.Errorf("%s, %d requests, want 1", typed(err), len(p.sent()))
			}
		})
		t.Run(api+": an error within a stream", func(t *testing.T) {
			alike(t, func(t *testing.T, p place) []string {
				n, err := c.stream(patient(t), p, "error/text")
				if err == nil && api != "openai responses" || n == 0 { // there it is an event
					t.Errorf("%d events, then %v", n, err)
				}
				return []string{fmt.Sprint(n, typed(err))}
			})
		})
		t.Run(api+": a stream that breaks off", func(t *testing.T) {
			alike(t, func(t *testing.T, p place) []string {
				n, err := c.stream(patient(t), p, "cut/text")
				if err == nil || n == 0 {
					t.Errorf("%d events, then %v", n, err)
				}
				return []string{fmt.Sprint(n, typed(err))}
			})
		})
		t.Run(api+": an answer that breaks off", func(t *testing.T) {
			p := at(t, stage.Sidecar)
			if err := c.ask(patient(t), p, "cut/text", 0); err == nil {
				t.Error("no error")
			}
		})
		t.Run(api+": the upstream is down", func(t *testing.T) {
			err := c.ask(patient(t), at(t, stage.Dead), "text", 0)
			if status(err) != 502 {
				t.Errorf("got %s", typed(err))
			}
		})
		t.Run(api+": a key of the sidecar's own", func(t *testing.T) {
			p := at(t, stage.Keyed)
			if err := c.ask(patient(t), p, "text", 2); status(err) != 401 || len(p.sent()) != 0 {
				t.Errorf("with a wrong key: %s, %d requests", typed(err), len(p.sent()))
			}
		})
		t.Run(api+": a stream is cancelled", func(t *testing.T) {
			p := at(t, stage.Sidecar)
			ctx, cancel := context.WithCancel(patient(t))
			first := make(chan struct{})
			ended := make(chan error, 1)
			go func() {
				ended <- cancelled(ctx, p, api, first)
			}()
			select {
			case <-first:
			case err := <-ended:
				t.Fatalf("no first event: %v", err)
			}
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("the stream ended with %v", err)
			}
			ok(t, on.Fake.Gone(patient(t), p.scenario))
		})
		t.Run(api+": a call is cancelled before its answer", func(t *testing.T) {
			p := at(t, stage.Sidecar)
			ctx, cancel := context.WithCancel(patient(t))
			ended := make(chan error, 1)
			go func() { ended <- c.ask(ctx, p, "silent/text", 0) }()
			ok(t, on.Fake.Came(patient(t), p.scenario))
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			ok(t, on.Fake.Gone(patient(t), p.scenario))
		})
	}
}

// cancelled reads a stream that never ends, and tells when its first event has come.
func cancelled(ctx context.Context, p place, api string, first chan<- struct{}) error {
	switch api {
	case "openai chat":
		client := p.openai()
		return afterFirst(client.Chat.Completions.NewStreaming(ctx, question("hang/text")), first)
	case "openai responses":
		client := p.openai()
		return afterFirst(client.Responses.NewStreaming(ctx, responseQuestion("hang/text")), first)
	}
	client := p.anthropic()
	return afterFirst(client.Messages.NewStreaming(ctx, message("hang/text")), first)
}

func afterFirst(stream interface {
	Next() bool
	Err() error
	Close() error
}, first chan<- struct{},
) error {
	defer stream.Close()
	if stream.Next() {
		close(first)
		for stream.Next() {
		}
	}
	return stream.Err()
}
