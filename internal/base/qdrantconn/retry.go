package qdrantconn

import (
	"context"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	firstPause = 50 * time.Millisecond
	maxPause   = time.Second
)

// Unavailable reports whether asking again may help.
func Unavailable(err error) bool { return status.Code(err) == codes.Unavailable }

// Retry calls f until it gives something else than "unavailable", attempts times at most. Between two attempts it waits for
// half to all of a time that doubles. again, if it is not nil, is called before each repeat. Only for
// what may be done twice.
func Retry[T any](ctx context.Context, attempts int, again func(attempt int, err error), f func(context.Context) (T, error)) (T, error) {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		out, err := f(ctx)
		if err == nil || !Unavailable(err) || attempt >= attempts {
			return out, err
		}
		if again != nil {
			again(attempt, err)
		}
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
