package elastic

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/ragpilot/ragpilot/retriever/internal/dbspan"
	"github.com/ragpilot/ragpilot/retriever/store"
)

const (
	firstPause = 50 * time.Millisecond
	maxPause   = time.Second
)

// read sends a request that changes nothing, again and again while the server is unavailable, Options.Attempts times at
// most. The client makes its own request of it each time.
func (x *Index) read(ctx context.Context, send perform, bad error, out any) error {
	ctx, cancel := x.bounded(ctx)
	defer cancel()
	err := x.again(ctx, func(err error) bool { return errors.Is(err, store.ErrUnavailable) }, func() error {
		return exchange(ctx, send, bad, out)
	})
	return withCause(ctx, err)
}

// again calls f until its error is none to repeat it for, Options.Attempts times at most. Between two attempts it waits for
// half to all of a time that doubles.
func (x *Index) again(ctx context.Context, repeat func(error) bool, f func() error) error {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		err := f()
		if err == nil || !repeat(err) || attempt >= x.opts.Attempts || ctx.Err() != nil {
			return err
		}
		dbspan.Retry(ctx, attempt, err)
		wait := time.NewTimer(pause/2 + rand.N(pause/2)) //nolint:gosec // spreads load, hides nothing
		select {
		case <-ctx.Done():
			wait.Stop()
			return err
		case <-wait.C:
		}
		pause = min(2*pause, maxPause)
	}
}
