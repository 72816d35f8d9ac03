package contextpilot

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/ragpilot/ragpilot/contextpilot/internal/tree"
)

// batchPart is the plan of some requests of a stream, which share little with the others. Positions in Requests stand
// for the requests in Order and Groups; Plans is parallel to Requests.
type batchPart struct {
	Requests []int // numbers of the stream's requests, ascending
	Batch
}

// streamPolicy is a BatchPolicy that can plan more requests than fit in memory, in parts.
type streamPolicy interface {
	// OrderStream partitions n queries by likeness and orders and schedules each part. query returns query i; what it
	// returned is used until the part is yielded. Positions in a part's requests stand for the queries.
	OrderStream(ctx context.Context, n int, query func(i int) Query) iter.Seq2[streamPart, error]
}

// streamPart is the order of some of the queries of a stream: Requests are their numbers, the rest is what
// [BatchPolicy] returns for them.
type streamPart struct {
	Requests []int
	Orders   [][]int
	Schedule []int
	Groups   [][]int
}

// planStream plans n requests of one scope in parts, with one part of them in memory: for batches that PlanBatch
// cannot hold. Run the parts in the order they come. at returns request i, the same each time; it is called four times
// for each. The requests must be first turns without a session. What is lost against planning the whole is what
// requests of different parts share. The walk ends after the first error: ctx's, one that wraps ErrBadRequest and names the
// request, or the policy's; a policy that is no streamPolicy is an error that wraps ErrBadRequest. One that panics, in at,
// too, repeats a request or leaves one out is an error that wraps [ErrFault].
func (p *Pilot) planStream(ctx context.Context, n int, at func(i int) Request) iter.Seq2[batchPart, error] {
	return func(yield func(batchPart, error) bool) {
		policy := p.cfg.NewPolicy()
		stream, ok := policy.(streamPolicy)
		if !ok {
			yield(batchPart{}, fmt.Errorf("%w: policy %s cannot plan a stream", ErrBadRequest, policy.Name()))
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
		next, stop := iter.Pull2(stream.OrderStream(ctx, n, query))
		defer func() { _ = p.guard(stageReorder, func() error { stop(); return nil }) }()
		out := outstanding{planned: make([]bool, max(n, 0)), left: max(n, 0)}
		for {
			var part streamPart
			var failed error // of the policy's own accord
			more := false
			fault := p.guard(stageReorder, func() error {
				part, failed, more = next()
				if !more && out.left > 0 {
					failed = ctx.Err()
				}
				if bad == nil && failed == nil {
					return out.take(part, more)
				}
				return nil
			})
			if err := cmp.Or(bad, fault, failed); err != nil {
				yield(batchPart{}, err)
				return
			}
			if !more || !yield(p.commitPart(part, corrected, at), nil) {
				return
			}
		}
	}
}

// outstanding is which requests of a stream no part has had.
type outstanding struct {
	planned []bool
	left    int
	seen    []bool // scratch
}

// take checks that a part is one, of requests that are outstanding, or that none are if there are no more parts.
func (o *outstanding) take(part streamPart, more bool) error {
	if !more {
		if o.left > 0 {
			return fmt.Errorf("request %d and %d others are in no part", slices.Index(o.planned, false), o.left-1)
		}
		return nil
	}
	n := len(part.Requests)
	if !permutation(part.Schedule, n, &o.seen) || len(part.Orders) != n || !slices.Equal(slices.Concat(part.Groups...), part.Schedule) {
		return fmt.Errorf("%d orders, schedule %v, groups %v of %d requests", len(part.Orders), part.Schedule, part.Groups, n)
	}
	for _, i := range part.Requests {
		if i < 0 || i >= len(o.planned) || o.planned[i] {
			return fmt.Errorf("request %d of %d: there is none, or another part has it", i, len(o.planned))
		}
		o.planned[i] = true
	}
	o.left -= n
	return nil
}

// commitPart records the requests of a part in the order of execution. If orders are corrected, so is the schedule, for
// which the whole part is laid out before.
func (p *Pilot) commitPart(part streamPart, corrected bool, at func(i int) Request) batchPart {
	out := batchPart{Requests: part.Requests, Batch: Batch{
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
