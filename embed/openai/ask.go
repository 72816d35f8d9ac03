package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/ragpilot/ragpilot/internal/base/pause"
)

// firstWait is how long the second attempt waits at most, if the server does not say. The wait doubles with each attempt.
const firstWait = 250 * time.Millisecond

// maxAnswer bounds an answer, in bytes: thousands of vectors as decimal numbers.
const maxAnswer = 256 << 20

// request is the body of a request.
type request struct {
	Input      []string `json:"input"`
	Model      string   `json:"model,omitempty"`
	Dimensions int      `json:"dimensions,omitempty"`
	Encoding   Encoding `json:"encoding_format"`
}

// ask gets the vectors of some texts, one at least, with as many attempts as allowed.
func (e *Embedder) ask(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(request{Input: texts, Model: e.opts.Model, Dimensions: e.opts.Dimensions, Encoding: e.opts.Encoding})
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		answer, err := e.send(ctx, body)
		if err == nil {
			return read(answer, len(texts), e.opts.Dimensions)
		}
		if attempt >= e.opts.Attempts || !again(err) || !e.pause(ctx, attempt, err) {
			return nil, err
		}
	}
}

// pause waits in front of the next attempt. It returns false if that makes no sense: the server wants to be left alone for
// longer than allowed, or the context ends before.
func (e *Embedder) pause(ctx context.Context, attempt int, err error) bool {
	wait := min(firstWait<<min(attempt-1, 16), e.opts.MaxWait)
	wait = wait/2 + rand.N(wait/2+1) //nolint:gosec // spreads load, hides nothing
	if refused, ok := errors.AsType[*StatusError](err); ok {
		if refused.RetryAfter > e.opts.MaxWait {
			return false
		}
		wait = max(wait, refused.RetryAfter)
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= wait {
		return false
	}
	return pause.For(ctx, wait)
}

// again reports whether an error is one that may pass: the connection is refused, or the server is overloaded, starting or broken.
func again(err error) bool {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return true
	}
	refused, ok := errors.AsType[*StatusError](err)
	return ok && errors.Is(refused, ErrUnavailable)
}

// send is one attempt. It returns the body of an answer with status 200.
func (e *Embedder) send(ctx context.Context, body []byte) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	bounded, cancel := ctx, func() {}
	if e.opts.Timeout > 0 {
		bounded, cancel = context.WithTimeout(ctx, e.opts.Timeout)
	}
	defer cancel()
	req, err := http.NewRequestWithContext(bounded, http.MethodPost, e.address, bytes.NewReader(body))
	if err != nil {
		return nil, withoutURL(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if e.opts.Key != "" {
		req.Header.Set("Authorization", "Bearer "+e.opts.Key)
	}
	res, err := e.opts.Client.Do(req)
	if err != nil {
		return nil, e.unreachable(ctx, bounded, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, e.refused(res)
	}
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, e.unreachable(ctx, bounded, err)
	case len(answer) > maxAnswer:
		return nil, fmt.Errorf("%w: it is longer than %d bytes", ErrBadAnswer, maxAnswer)
	}
	return answer, nil
}

// unreachable is an error of the connection, or the cause of the context's end.
func (e *Embedder) unreachable(ctx, bounded context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case bounded.Err() != nil:
		return fmt.Errorf("%w: no answer within Options.Timeout = %v: %w", ErrUnavailable, e.opts.Timeout, bounded.Err())
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, withoutURL(err))
}

// withoutURL takes the address off an error: it may have a key in it.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
