package qdrant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	api "github.com/qdrant/go-client/qdrant"

	"github.com/ragpilot/ragpilot/memory"
)

// batch is how many points one request writes, and batchBytes how many bytes of text, unless a single one has more.
const (
	batch      = 256
	batchBytes = 8 << 20
)

// grace is how long what was begun may take to be ended after the context of a change has: its points are deleted, or the
// server is asked what became of it.
const grace = time.Second

// afterwards returns a context that ends grace after ctx does. release frees what it holds.
func afterwards(ctx context.Context) (after context.Context, release func()) {
	after, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(grace):
			cancel(context.Cause(ctx))
		case <-after.Done():
		}
	})
	return after, func() {
		stop()
		cancel(nil)
	}
}

// enter waits until no transaction of this process runs.
func (b *Backend) enter(ctx context.Context) (leave func(), err error) {
	select {
	case <-b.writing:
		return func() { b.writing <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("qdrant: %w", context.Cause(ctx))
	}
}

// Change runs f, again if another process has changed something meanwhile, and commits what it did. If the error wraps
// [ErrUnknownOutcome] the change may have been stored, and if it wraps [ErrNotErased] it was. It returns a second after ctx
// has ended at the latest.
func (b *Backend) Change(ctx context.Context, f func(tx memory.Tx) error) error {
	leave, err := b.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for {
		done, err := b.attempt(ctx, f)
		if done || err != nil {
			return err
		}
	}
}

// attempt runs f once. Without an error it is not done if another process has changed something since it began.
func (b *Backend) attempt(ctx context.Context, f func(tx memory.Tx) error) (done bool, err error) {
	h, err := b.head(ctx)
	if err != nil {
		return false, err
	}
	if err := b.finish(ctx, h); err != nil {
		return false, err
	}
	t := newTx(b, h)
	if err = f(t); err == nil && t.changed() {
		if done, err = b.commit(ctx, t); done || err == nil {
			return done, err
		}
	}
	now, headErr := b.head(ctx)
	switch {
	case err != nil && (headErr != nil || now.commit == h.commit):
		return false, err
	case headErr != nil:
		return false, headErr
	}
	return now.commit == h.commit, nil // what f read, or what made it fail, was one state
}

// commit makes a transaction valid. It is not done if another process was faster or nothing was changed because of the error.
func (b *Backend) commit(ctx context.Context, t *tx) (done bool, err error) {
	for _, d := range t.lengths() {
		if !slices.Contains(t.head.dimensions, d) {
			if ok, err := b.announce(ctx, t, d); !ok {
				return false, err
			}
		}
	}
	next := t.head.next()
	points, gone, err := t.points(next)
	if err != nil {
		return false, err
	}
	next.gone, next.wipe = gone, t.wipe
	if t.space != nil {
		next.space = *t.space
	}
	// Whatever became of the caller, what was begun is ended.
	after, release := afterwards(ctx)
	defer release()
	for _, collection := range sortedKeys(points) {
		if err := b.write(ctx, collection, points[collection]); err != nil {
			return false, errors.Join(err, b.discard(after, next))
		}
	}
	won, err := b.settle(ctx, after, t.head, next)
	switch {
	case errors.Is(err, ErrUnknownOutcome):
		return true, err
	case err != nil || !won:
		return false, errors.Join(err, b.discard(after, next))
	}
	if err := b.finish(after, next); err != nil && (len(gone) > 0 || next.wipe) {
		return true, fmt.Errorf("%w: %w", ErrNotErased, err)
	}
	return true, nil
}

// announce adds a length of vectors to the head and makes the collection.
func (b *Backend) announce(ctx context.Context, t *tx, dimensions int) (ok bool, err error) {
	if err := b.createVectors(ctx, dimensions); err != nil {
		return false, err
	}
	next := t.head.next()
	next.dimensions = append(next.dimensions, dimensions)
	after, release := afterwards(ctx)
	defer release()
	if ok, err = b.settle(ctx, after, t.head, next); ok {
		t.head = next
	}
	return ok, err
}

// settle replaces the head and says whether it did. An answer that was lost is asked for once more, until after ends.
func (b *Backend) settle(ctx, after context.Context, h, next *head) (won bool, err error) {
	next.hidden = make(map[string]bool, len(next.gone))
	for _, id := range next.gone {
		next.hidden[id] = true
	}
	swapErr := b.swap(ctx, h, next.payload())
	now, err := b.head(after)
	switch {
	case err != nil && swapErr == nil:
		return false, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	case err != nil:
		return false, fmt.Errorf("%w: %w", ErrUnknownOutcome, swapErr)
	case now.ours(next.commit):
		return true, nil
	case now.number > next.number+recent:
		return false, fmt.Errorf("%w: too many changes of others", ErrUnknownOutcome)
	}
	if swapErr == nil && now.commit == h.commit {
		return false, fmt.Errorf("qdrant: %q: the server did not write the head", b.opts.Collection)
	}
	return false, swapErr
}

// write stores points that count only when the head says so.
func (b *Backend) write(ctx context.Context, collection string, points []*api.PointStruct) error {
	for len(points) > 0 {
		n, bytes := 0, 0
		for n < min(len(points), batch) && (n == 0 || bytes < batchBytes) {
			payload := points[n].GetPayload()
			bytes += len(payload[keyText].GetStringValue()) +
				4*len(points[n].GetVectors().GetVector().GetDense().GetData())
			n++
		}
		request := &api.UpsertPoints{CollectionName: collection, Points: points[:n], Wait: new(true)}
		if err := done(ctx, b, "write "+collection, b.client.Upsert, request); err != nil {
			return err
		}
		points = points[n:]
	}
	return nil
}

// discard deletes the points of a commit that was not made, as well as it can: if it cannot, the next change does.
func (b *Backend) discard(ctx context.Context, next *head) error {
	for _, collection := range b.collections(next) {
		if err := b.remove(ctx, collection, &api.Filter{Must: []*api.Condition{api.NewMatch(keyTx, next.commit)}}); err != nil {
			if errors.Is(err, ErrUnavailable) || ctx.Err() != nil {
				return nil //nolint:nilerr // the caller's error says so
			}
			return err
		}
	}
	return nil
}

func (b *Backend) remove(ctx context.Context, collection string, which *api.Filter) error {
	return done(ctx, b, "delete from "+collection, b.client.Delete, &api.DeletePoints{
		CollectionName: collection, Points: api.NewPointsSelectorFilter(which), Wait: new(true),
	})
}

// finish deletes what the head's commit removed and what commits that were not made have left, and makes its points
// ordinary ones. It can be done by anybody, again, and late: points of later commits are not touched.
func (b *Backend) finish(ctx context.Context, h *head) error {
	b.mu.Lock()
	finished := h.done || b.finished == h.commit
	b.mu.Unlock()
	if finished {
		return nil
	}
	for _, collection := range b.collections(h) {
		if err := b.remove(ctx, collection, h.rest()); err != nil {
			return err
		}
		if err := b.settlePoints(ctx, collection, h.commit); err != nil {
			return err
		}
	}
	if len(h.gone) > 0 || h.wipe { // a long list would be read with every head
		done := map[string]*api.Value{"gone": stringList(nil), "wipe": api.NewValueBool(false), "finished": api.NewValueBool(true)}
		if err := b.swap(ctx, h, done); err != nil {
			return err
		}
	}
	b.mu.Lock()
	b.finished = h.commit
	b.mu.Unlock()
	return nil
}

// rest selects what does not count under the head, and will not under a later one: points of commits that were not made, and
// what the head's commit removed.
func (h *head) rest() *api.Filter {
	number := float64(h.number)
	some := []*api.Condition{api.NewFilterAsCondition(&api.Filter{
		Must:    []*api.Condition{api.NewRange(keyNumber, &api.Range{Lte: &number})},
		MustNot: []*api.Condition{api.NewIsEmpty(keyTx), api.NewMatch(keyTx, h.commit)},
	})}
	if h.wipe { // whatever is older; the head itself has no such number
		some = append(some, api.NewRange(keyNumber, &api.Range{Lt: &number}))
	}
	if len(h.gone) > 0 {
		ids := make([]*api.PointId, len(h.gone))
		for i, id := range h.gone {
			ids[i] = api.NewIDUUID(id)
		}
		some = append(some, api.NewHasID(ids...))
	}
	return &api.Filter{Should: some}
}

func (b *Backend) settlePoints(ctx context.Context, collection, commit string) error {
	return done(ctx, b, "settle points of "+collection, b.client.DeletePayload, &api.DeletePayloadPoints{
		CollectionName: collection, Keys: []string{keyTx}, Wait: new(true),
		PointsSelector: api.NewPointsSelectorFilter(&api.Filter{Must: []*api.Condition{api.NewMatch(keyTx, commit)}}),
	})
}

// Reset removes everything, the space included. Empty collections stay.
func (b *Backend) Reset(ctx context.Context) error {
	return b.Change(ctx, func(t memory.Tx) error {
		t.(*tx).wipe = true
		return t.SetSpace(ctx, memory.Space{})
	})
}
