package qdrant

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	api "github.com/qdrant/go-client/qdrant"
	"go.opentelemetry.io/otel/attribute"

	"github.com/ragpilot/ragpilot/retriever/store"
)

const (
	// slack is the number of hits fetched beyond K, to see whether those at the cut share a score.
	slack = 16
	// maxTies bounds how far beyond K hits of one score are sorted by ID.
	maxTies = 10_000
	// largeK is the K from which the number of points is asked first: servers reserve memory for all hits asked for.
	largeK = 10_000
)

// Search returns the at most q.K documents that fit best, see [store.Searcher]. Errors of the embedders are returned
// wrapped.
func (x *Index) Search(ctx context.Context, q store.Query) (hits []store.Hit, err error) {
	err = x.call(ctx, "search", func(ctx context.Context) error {
		if err := q.Check(x.opts.Layout.tenants()); err != nil {
			return err
		}
		v, err := x.embed(ctx, store.ValidText(q.Text))
		if err != nil || v.none() {
			return err
		}
		filter, err := x.restriction(q)
		if err != nil {
			return err
		}
		k, err := x.reachable(ctx, q.K)
		if err != nil {
			return err
		}
		hits, err = x.best(ctx, v, filter, k)
		return err
	}, attribute.Int("ragpilot.k", q.K))
	if err != nil {
		return nil, err
	}
	return hits, nil
}

// reachable returns K, or the number of points if that is smaller and K is large.
func (x *Index) reachable(ctx context.Context, k int) (int, error) {
	if k < largeK {
		return k, nil
	}
	n, err := read(ctx, x, store.ErrBadQuery, x.client.Count, &api.CountPoints{CollectionName: x.opts.Collection})
	if err != nil {
		return 0, err
	}
	return int(min(uint64(k), max(n, 1))), nil //nolint:gosec // at most k
}

// best returns the first k hits. If the last hit fetched still has the score of the k-th, others with that score and a
// smaller ID may not have been fetched.
func (x *Index) best(ctx context.Context, v vectors, filter *api.Filter, k int) ([]store.Hit, error) {
	points, err := x.query(ctx, v, filter, k+slack, api.NewWithPayloadEnable(true))
	if err != nil {
		return nil, err
	}
	if tied(points, k, k+slack) {
		return x.bestOfTied(ctx, v, filter, k)
	}
	x.sort(points)
	points = points[:min(k, len(points))]
	hits := make([]store.Hit, len(points))
	for i, p := range points {
		if hits[i], err = x.opts.Layout.hit(p.GetId(), p.GetPayload()); err != nil {
			return nil, err
		}
		hits[i].Score = float64(p.GetScore())
	}
	return hits, nil
}

// tied reports whether the cut at k goes through points of one score, the last of the limit included.
func tied(points []*api.ScoredPoint, k, limit int) bool {
	return len(points) == limit && points[len(points)-1].GetScore() == points[k-1].GetScore()
}

// bestOfTied fetches IDs alone until the ties at the cut end, and then the documents that are first.
func (x *Index) bestOfTied(ctx context.Context, v vectors, filter *api.Filter, k int) ([]store.Hit, error) {
	var points []*api.ScoredPoint
	for limit := k + 8*slack; ; limit = min(4*limit, k+maxTies) {
		var err error
		points, err = x.query(ctx, v, filter, limit, api.NewWithPayloadInclude(x.opts.Layout.ID))
		if err != nil {
			return nil, err
		}
		if limit == k+maxTies || !tied(points, k, limit) {
			break
		}
	}
	x.sort(points)
	points = points[:min(k, len(points))]
	return x.documents(ctx, points)
}

// documents returns the points as hits, in their order. Those that were deleted meanwhile are left out.
func (x *Index) documents(ctx context.Context, points []*api.ScoredPoint) ([]store.Hit, error) {
	ids := make([]*api.PointId, len(points))
	for i, p := range points {
		ids[i] = p.GetId()
	}
	found, err := read(ctx, x, store.ErrBadQuery, x.client.Get, &api.GetPoints{
		CollectionName: x.opts.Collection, Ids: ids, WithPayload: api.NewWithPayloadEnable(true),
	})
	if err != nil {
		return nil, err
	}
	byID := make(map[string]map[string]*api.Value, len(found))
	for _, p := range found {
		byID[pointName(p.GetId())] = p.GetPayload()
	}
	hits := make([]store.Hit, 0, len(points))
	for _, p := range points {
		payload, exists := byID[pointName(p.GetId())]
		if !exists {
			continue
		}
		h, err := x.opts.Layout.hit(p.GetId(), payload)
		if err != nil {
			return nil, err
		}
		h.Score = float64(p.GetScore())
		hits = append(hits, h)
	}
	return hits, nil
}

// sort puts the points into the order of [store.Sort].
func (x *Index) sort(points []*api.ScoredPoint) {
	slices.SortFunc(points, func(a, b *api.ScoredPoint) int {
		if c := cmp.Compare(b.GetScore(), a.GetScore()); c != 0 {
			return c
		}
		return strings.Compare(x.opts.Layout.id(a.GetId(), a.GetPayload()), x.opts.Layout.id(b.GetId(), b.GetPayload()))
	})
}

// query sends one search.
func (x *Index) query(
	ctx context.Context, v vectors, filter *api.Filter, limit int, payload *api.WithPayloadSelector,
) ([]*api.ScoredPoint, error) {
	request := x.request(v, filter, limit)
	request.WithPayload = payload
	points, err := read(ctx, x, store.ErrBadQuery, x.client.Query, request)
	if err != nil {
		return nil, x.explain(ctx, fmt.Errorf("query: %w", err), len(v.dense))
	}
	return points, nil
}
