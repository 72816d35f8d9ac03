package contextpilot

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/ragpilot/ragpilot/internal/tree"
)

// BatchPart is the plan of some requests of a stream, which share little with the others. Positions in Requests stand
// for the requests in Order and Groups; Plans is parallel to Requests.
type BatchPart struct {
	Requests []int // numbers of the stream's requests, ascending
	Batch
}

// StreamPolicy is a BatchPolicy that can plan more requests than fit in memory, in parts.
type StreamPolicy interface {
	// OrderStream partitions n queries by likeness and orders and schedules each part. query returns query i; what it
	// returned is used until the part is yielded. Positions in a part's requests stand for the queries.
	OrderStream(ctx context.Context, n int, query func(i int) Query) iter.Seq2[StreamPart, error]
}

// StreamPart is the order of some of the queries of a stream.
type StreamPart struct {
	Requests []int
	Orders   [][]int
	Schedule []int
	Groups   [][]int
}

// PlanStream plans n requests of one scope in parts, with one part of them in memory: for batches that PlanBatch
// cannot hold. Run the parts in the order they come. at returns request i, the same each time; it is called four times
// for each. The requests must be first turns without a session. What is lost against planning the whole is what
// requests of different parts share. The walk ends after the first error: ctx's, one that wraps ErrBadRequest and names the
// request, or the policy's; a policy that is no [StreamPolicy] is an error that wraps ErrBadRequest.
func (p *Pilot) PlanStream(ctx context.Context, n int, at func(i int) Request) iter.Seq2[BatchPart, error] {
	return func(yield func(BatchPart, error) bool) {
		policy := p.cfg.NewPolicy()
		stream, ok := policy.(StreamPolicy)
		if !ok {
			yield(BatchPart{}, fmt.Errorf("%w: policy %s cannot plan a stream", ErrBadRequest, policy.Name()))
			return
		}
		var bad error
		var scope *Scope // of all requests
		corrected := false
		index := View{t: tree.New(0, 0, nil)}
		query := func(i int) Query {
			req := at(i)
			if scope == nil {
				scope = &req.Scope
			}
			if bad == nil && (req.Session != "" || len(req.Prior) > 0 || req.Scope != *scope) {
				bad = fmt.Errorf("%w: request %d: a stream is of first turns of one scope without a session", ErrBadRequest, i)
			}
			corrected = corrected || p.corrects(&req)
			d := p.prepareOne(&req)
			return Query{Request: d.plan.RequestID, Blocks: d.query(nil), Tree: index, From: Root, gate: d.gate}
		}
		for part, err := range stream.OrderStream(ctx, n, query) {
			if bad != nil {
				err = bad
			}
			if err != nil {
				yield(BatchPart{}, err)
				return
			}
			if !yield(p.commitPart(part, corrected, at), nil) {
				return
			}
		}
		if bad != nil {
			yield(BatchPart{}, bad)
		}
	}
}

// commitPart records the requests of a part in the order of execution. If orders are corrected, so is the schedule, for
// which the whole part is laid out before.
func (p *Pilot) commitPart(part StreamPart, corrected bool, at func(i int) Request) BatchPart {
	out := BatchPart{Requests: part.Requests, Batch: Batch{
		Plans: make([]Plan, len(part.Requests)), Order: part.Schedule, Groups: part.Groups,
	}}
	var seen []bool
	layOut := func(i int) (*draft, Request) {
		req := at(part.Requests[i])
		d := p.prepareOne(&req)
		if d.plan.Fault == nil && permutation(part.Orders[i], len(d.free), &seen) {
			d.setOrder(part.Orders[i])
		}
		return d, req
	}
	var drafts []*draft
	var reqs []Request
	if corrected {
		for i := range part.Requests {
			d, req := layOut(i)
			drafts, reqs = append(drafts, d), append(reqs, req)
		}
		out.Groups = regroup(drafts, identity(nil, len(drafts)))
		out.Order = slices.Concat(out.Groups...)
	}
	for _, i := range out.Order {
		began := p.cfg.Now()
		var d *draft
		var req Request
		if corrected {
			d, req = drafts[i], reqs[i]
			drafts[i] = nil // no longer needed, and large
		} else {
			d, req = layOut(i)
		}
		p.commit(d, &req)
		out.Plans[i] = d.plan
		p.done(&out.Plans[i], began)
	}
	return out
}
