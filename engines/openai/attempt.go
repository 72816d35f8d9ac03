package openai

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/base/sse"
)

// failure is why an attempt failed, and whether the request may be sent again.
type failure struct {
	err      error
	again    bool
	after    time.Duration // what the server asked to wait
	notTaken bool          // the server has not looked at the request
}

// Bounds of what is read after the end of an answer so that its connection can be used again.
const (
	drainBytes = 4 << 10
	drainTime  = 100 * time.Millisecond
)

const idempotencyKey = "Idempotency-Key"

// attempt sends the call once and reads the answer into a. A nil result means that the answer is complete.
func (e *Engine) attempt(caller context.Context, c call, a *answer) *failure {
	// Leaving cancels the request, which closes the connection unless the answer was read to its end.
	ctx, cancel := context.WithCancelCause(caller)
	defer cancel(nil)

	var reused, answered atomic.Bool
	var conns atomic.Int32 // on which the request was sent, or was to be
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:              func(info httptrace.GotConnInfo) { reused.Store(info.Reused); conns.Add(1) },
		GotFirstResponseByte: func() { answered.Store(true) },
	})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.endpoint("/chat/completions"), bytes.NewReader(c.body))
	if err != nil {
		return &failure{err: err}
	}
	request.Header = c.header
	if _, ok := request.Header[idempotencyKey]; !ok {
		// An empty list is not sent. It lets net/http send the request again, at once and on another connection, if the server closed
		// this idle one: llama-server does so after each streamed answer.
		request.Header[idempotencyKey] = []string{}
	}

	watch := newWatch(cancel, e.config.Timeouts.Header, "no answer")
	watch.start()
	response, err := e.client.Do(request)
	watch.stop()
	if err != nil {
		ended, cause := endCause(caller, ctx)
		switch {
		case ended:
			return &failure{err: cause}
		case cause != nil: // Timeouts.Header
			return &failure{err: fmt.Errorf("%w: %w", engines.ErrUnreachable, cause)}
		}
		if outer, ok := errors.AsType[*url.Error](err); ok {
			err = outer.Err
		}
		return &failure{
			err: fmt.Errorf("%w: %w", engines.ErrUnreachable, err),
			// A pooled connection may break because the server closed it while it was idle. On a fresh one the
			// request itself may be what breaks the server: do not send it again.
			again:    isDial(err) || reused.Load() && !answered.Load(),
			notTaken: isDial(err) && conns.Load() == 0,
		}
	}
	defer response.Body.Close()

	idle := newWatch(cancel, e.config.Timeouts.Idle, "no data")
	body := &watchedReader{r: response.Body, watch: idle}
	if response.StatusCode != http.StatusOK {
		response.Body = io.NopCloser(body)
		status := readStatusError(response, e.config.Now())
		if ended, cause := endCause(caller, ctx); ended {
			return &failure{err: cause}
		}
		return &failure{
			err: status, again: transient(status.Code), after: status.RetryAfter,
			notTaken: turnedAway(status.Code) && conns.Load() == 1,
		}
	}
	if err := e.readAnswer(ctx, response.Header, body, a); err != nil {
		return &failure{err: broken(caller, ctx, a, err)}
	}
	drain(body, cancel)
	return nil
}

// broken classifies what went wrong after a status of 200. Nothing of it is repeated.
func broken(caller, ctx context.Context, a *answer, err error) error {
	ended, cause := endCause(caller, ctx)
	_, reported := errors.AsType[*StatusError](err)
	switch {
	case a.refused != nil:
	case ended && a.first.IsZero():
		return cause
	case cause != nil:
		err = cause
	case reported && a.first.IsZero():
		return err
	}
	return fmt.Errorf("%w: %w", engines.ErrInterrupted, err)
}

// readAnswer reads a stream, or a whole answer of a server that does not stream.
func (e *Engine) readAnswer(ctx context.Context, header http.Header, body io.Reader, a *answer) error {
	r := bufio.NewReaderSize(body, 8<<10)
	kind, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	first, _ := r.Peek(1)
	switch {
	case kind == "application/json", kind != "text/event-stream" && string(first) == "{":
		return a.readWhole(r, e.config.MaxAnswerBytes+e.config.MaxEventBytes)
	case kind == "text/html":
		page, _ := io.ReadAll(io.LimitReader(r, maxErrorBody))
		return &StatusError{Code: http.StatusOK, Message: "a web page instead of an answer: " + errorMessage(page, kind)}
	}
	return a.readStream(ctx, sse.NewReader(r, e.config.MaxEventBytes))
}

// endCause returns why a request was ended from this side, nil if it was not; ended says that it was the caller's
// context.
func endCause(caller, ctx context.Context) (ended bool, cause error) {
	if caller.Err() != nil {
		return true, endedErr(caller)
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	return false, nil
}

// endedErr returns the context's error together with its cause if that says more.
func endedErr(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// isDial reports that no connection could be made, so that nothing was sent.
func isDial(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// drain reads the few bytes between the last event and the end of the body, without which the connection
// cannot be kept. A server that says [DONE] and keeps the answer open costs drainTime once.
func drain(body *watchedReader, cancel context.CancelCauseFunc) {
	body.watch.stop()
	body.watch = newWatch(cancel, drainTime, "no end")
	_, _ = io.CopyN(io.Discard, body, drainBytes)
}

// watch cancels a request when a wait takes too long. It is started for each wait and stopped after it.
type watch struct {
	limit time.Duration // not positive: none
	fire  func()
	timer *time.Timer
}

func newWatch(cancel context.CancelCauseFunc, limit time.Duration, what string) *watch {
	return &watch{limit: limit, fire: func() { cancel(&timeoutError{what: what, after: limit}) }}
}

func (w *watch) start() {
	switch {
	case w.limit <= 0:
	case w.timer == nil:
		w.timer = time.AfterFunc(w.limit, w.fire)
	default:
		w.timer.Reset(w.limit)
	}
}

func (w *watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// watchedReader bounds each single read.
type watchedReader struct {
	r     io.Reader
	watch *watch
}

func (r *watchedReader) Read(p []byte) (int, error) {
	r.watch.start()
	defer r.watch.stop()
	return r.r.Read(p)
}

// transient reports the statuses of servers that are overloaded, restarting or behind a gateway that did not
// reach them.
func transient(code int) bool {
	switch code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// turnedAway reports the statuses of servers that did not look at a request. 502 and 504 are not among them: behind a gateway that
// says so, an engine may have read it.
func turnedAway(code int) bool {
	return code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable
}

// retryWait decides whether another attempt follows the n-th (from 0), and after which wait.
func (e *Engine) retryWait(ctx context.Context, n int, fault *failure) (wait time.Duration, again bool) {
	if !fault.again || n >= e.config.Retries || ctx.Err() != nil {
		return 0, false
	}
	longest := e.config.MaxRetryWait
	if fault.after > longest {
		return 0, false // coming back sooner than asked would only be refused again
	}
	step := min(e.config.RetryWait, longest)
	for range n {
		step = min(2*step, longest)
	}
	half := step / 2
	jitter := time.Duration(e.config.Jitter() * float64(half))
	wait = max(half, fault.after) + jitter
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
		return 0, false // the real error says more than a deadline
	}
	return wait, true
}
