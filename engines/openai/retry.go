package openai

import (
	"context"
	"net/http"
	"time"
)

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
