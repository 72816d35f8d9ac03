package retriever

import (
	"context"
	"fmt"
	"time"

	"github.com/tmc/langchaingo/schema"
)

// answer is what one source gave.
type answer struct {
	docs []schema.Document
	err  error
	took time.Duration
}

// ask sends the query to all sources and waits for them, for their time, or for ctx, whose end is an error.
func (f *FanIn) ask(ctx context.Context, query string) ([]answer, error) {
	all, stop := ctx, func() {}
	if f.cfg.Timeout > 0 {
		all, stop = context.WithTimeoutCause(ctx, f.cfg.Timeout, ErrLate)
	}
	defer stop()
	waits := make([]<-chan answer, len(f.cfg.Sources))
	times := make([]context.Context, len(f.cfg.Sources))
	for i := range f.cfg.Sources {
		waits[i], times[i], stop = f.start(all, i, query)
		defer stop()
	}
	start := time.Now()
	found := make([]answer, len(waits))
	for i, wait := range waits {
		select {
		case found[i] = <-wait:
		case <-times[i].Done():
			select {
			case found[i] = <-wait: // both at once
			default:
				found[i] = answer{err: context.Cause(times[i]), took: time.Since(start)}
			}
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return found, nil
}

// start asks one source. Its answer will be in the channel, or the returned context will be over.
func (f *FanIn) start(ctx context.Context, i int, query string) (<-chan answer, context.Context, func()) {
	wait := make(chan answer, 1) // an answer without a waiting caller is dropped with it
	if f.late[i].Load() >= maxLate {
		wait <- answer{err: fmt.Errorf("%w: %d calls are late", ErrBusy, maxLate)}
		return wait, ctx, func() {}
	}
	s, stop := f.cfg.Sources[i], func() {}
	if s.Timeout > 0 {
		ctx, stop = context.WithTimeoutCause(ctx, s.Timeout, ErrLate)
	}
	go func() {
		start := time.Now()
		// From its end on, a context that is over counts the call as late, until it is back.
		counted := context.AfterFunc(ctx, func() { f.late[i].Add(1) })
		docs, err := retrieve(ctx, s.Retriever, query)
		if !counted() {
			f.late[i].Add(-1)
		}
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		if s.Limit > 0 && len(docs) > s.Limit {
			docs = docs[:s.Limit]
		}
		wait <- answer{docs: docs, err: err, took: time.Since(start)}
	}()
	return wait, ctx, stop
}

// retrieve makes an error of a panic: it would end the program, and not the search.
func retrieve(ctx context.Context, r schema.Retriever, query string) (docs []schema.Document, err error) {
	defer func() {
		if p := recover(); p != nil {
			docs, err = nil, fmt.Errorf("%w: %v", ErrPanic, p)
		}
	}()
	docs, err = r.GetRelevantDocuments(ctx, query)
	if err != nil {
		return nil, err
	}
	return docs, nil
}
