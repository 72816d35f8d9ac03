package qdrant

import (
	"context"
	"errors"
	"slices"

	api "github.com/qdrant/go-client/qdrant"

	"github.com/ragpilot/ragpilot/memory"
)

// page is how many points one request asks for, fewer if they are large.
const page = 500

// query says which points of a collection are wanted, and what of them.
type query struct {
	collection string
	must       []*api.Condition
	fields     []string // of the payload; nil: all
	vectors    bool
}

// each calls f for the points that are valid under a head, in any order.
func (b *Backend) each(ctx context.Context, h *head, q query, f func(*api.RetrievedPoint) error) error {
	limit := uint32(page)
	request := &api.ScrollPoints{
		CollectionName: q.collection, Filter: &api.Filter{Must: q.must}, Limit: &limit,
		WithPayload: api.NewWithPayloadEnable(true), WithVectors: api.NewWithVectorsEnable(q.vectors),
	}
	if q.fields != nil {
		request.WithPayload = api.NewWithPayloadInclude(append(slices.Clone(q.fields), keyTx, keyNumber)...)
	}
	var next *api.PointId
	scroll := func(ctx context.Context, request *api.ScrollPoints) (points []*api.RetrievedPoint, err error) {
		points, next, err = b.client.ScrollAndOffset(ctx, request)
		return points, err
	}
	for {
		points, err := call(ctx, b, "read "+q.collection, scroll, request)
		if errors.Is(err, errTooLarge) && limit > 1 {
			limit = max(1, limit/8)
			continue
		}
		if err != nil {
			return err
		}
		for _, p := range points {
			if !h.valid(p.GetId().GetUuid(), p.GetPayload()) {
				continue
			}
			if err := f(p); err != nil {
				return err
			}
		}
		if next == nil {
			return nil
		}
		request.Offset = next
	}
}

// eachRecord does so over the memories of all collections.
func (b *Backend) eachRecord(ctx context.Context, h *head, q query, f func(*api.RetrievedPoint) error) error {
	for _, d := range h.dimensions {
		q.collection = b.vectors(d)
		if err := b.each(ctx, h, q, f); err != nil {
			return err
		}
	}
	return nil
}

// covered are the conditions that select what a scope covers.
func covered(scope memory.Scope, more ...*api.Condition) []*api.Condition {
	for _, f := range []struct{ key, value string }{{keyUser, scope.User}, {keyAgent, scope.Agent}, {keyRun, scope.Run}} {
		if f.value != "" {
			more = append(more, api.NewMatch(f.key, f.value))
		}
	}
	return more
}

// snapshot calls read with a head until no commit was made meanwhile. read begins anew each time. After some attempts the
// transactions of this process wait.
func (b *Backend) snapshot(ctx context.Context, read func(h *head) error) error {
	const patience = 4
	h, err := b.known(ctx)
	if err != nil {
		return err
	}
	for attempt := 0; ; attempt++ {
		if attempt == patience {
			leave, err := b.enter(ctx)
			if err != nil {
				return err
			}
			defer leave() // of a loop that goes on until it returns
		}
		err := read(h)
		now, headErr := b.head(ctx)
		switch {
		case headErr != nil:
			return headErr
		case now.commit == h.commit:
			return err
		}
		h = now
	}
}
