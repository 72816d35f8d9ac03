package qdrant

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	firstPause = 50 * time.Millisecond
	maxPause   = time.Second
)

// read calls f until it gives something else than "unavailable", Options.Attempts times at most. Between two attempts it
// waits for half to all of a time that doubles. Only for what changes nothing on the server.
func read[T any](ctx context.Context, x *Index, f func(context.Context) (T, error)) (T, error) {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		out, err := f(ctx)
		if err == nil || !unavailable(err) || attempt >= x.opts.Attempts {
			return out, err
		}
		eventRetry(ctx, attempt, err)
		wait := time.NewTimer(pause/2 + rand.N(pause/2)) //nolint:gosec // spreads load, hides nothing
		select {
		case <-ctx.Done():
			wait.Stop()
			return out, err
		case <-wait.C:
		}
		pause = min(2*pause, maxPause)
	}
}
