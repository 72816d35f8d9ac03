// Package pause waits: for a time, until a moment, or between attempts at a server. All waits end with their context.
package pause

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// For waits, and returns false if ctx ended first.
func For(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// Until waits for a moment, and returns false if ctx ended first.
func Until(ctx context.Context, due time.Time) bool { return For(ctx, time.Until(due)) }

const (
	firstPause = 50 * time.Millisecond
	maxPause   = time.Second
)

// Retries waits between the attempts at one thing: for half to all of a time that doubles. The zero value is ready.
type Retries struct{ next time.Duration }

// Wait waits in front of the next attempt, and returns false if ctx ended first.
func (r *Retries) Wait(ctx context.Context) bool {
	d := cmp.Or(r.next, firstPause)
	r.next = min(2*d, maxPause)
	return For(ctx, d/2+rand.N(d/2)) //nolint:gosec // spreads load, hides nothing
}

// RetryAfter reads the two forms of the header Retry-After, seconds and a date. Unreadable or past: 0. More than 68 years are 68 years.
func RetryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil || errors.Is(err, strconv.ErrRange) {
		return max(time.Duration(seconds)*time.Second, 0)
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(date.Sub(now), 0)
	}
	return 0
}
