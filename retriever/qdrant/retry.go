package qdrant

import (
	"context"

	"github.com/ragpilot/ragpilot/internal/storage/qdrantconn"
	"github.com/ragpilot/ragpilot/retriever/internal/dbspan"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// read calls f, again while the server is unavailable, Options.Attempts times at most. Only for what changes nothing on
// the server.
func read[T any](ctx context.Context, x *Index, f func(context.Context) (T, error)) (T, error) {
	again := func(attempt int, err error) { dbspan.Retry(ctx, attempt, typed(err, store.ErrBadQuery)) }
	return qdrantconn.Retry(ctx, x.opts.Attempts, again, f)
}
