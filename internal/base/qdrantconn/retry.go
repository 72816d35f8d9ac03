package qdrantconn

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ragpilot/ragpilot/internal/base/pause"
)

// Unavailable reports whether asking again may help.
func Unavailable(err error) bool { return status.Code(err) == codes.Unavailable }

// Retry calls f until it gives something else than "unavailable", attempts times at most. Between two attempts it waits for
// half to all of a time that doubles. again, if it is not nil, is called before each repeat. Only for
// what may be done twice.
func Retry[T any](ctx context.Context, attempts int, again func(attempt int, err error), f func(context.Context) (T, error)) (T, error) {
	var pauses pause.Retries
	for attempt := 1; ; attempt++ {
		out, err := f(ctx)
		if err == nil || !Unavailable(err) || attempt >= attempts {
			return out, err
		}
		if again != nil {
			again(attempt, err)
		}
		if !pauses.Wait(ctx) {
			return out, err
		}
	}
}
