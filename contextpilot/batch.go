package contextpilot

import (
	"context"
	"fmt"
	"slices"

	"github.com/ragpilot/ragpilot/contextpilot/internal/tree"
)

// Batch is an offline plan. Plans are in input order; Order is the order in which to run them; Groups are runs of
// Order that share a prefix.
type Batch struct {
	Plans  []Plan
	Order  []int
	Groups [][]int
}

// Lanes cuts Order into n runs of about equal length, to be executed side by side: requests that run at the same
// time cannot reuse each other's prompts, and in a depth-first order neighbours are those that could. A session is
// never cut: its requests stay in one lane, in order. Fewer than n lanes if there are fewer requests; n < 1 counts as 1.
func (b *Batch) Lanes(n int) [][]int {
	n = max(min(n, len(b.Order)), 1)
	lanes := make([][]int, 0, n)
	lane := map[string]int{} // session → its lane
	for i, r := range b.Order {
		at := i * n / len(b.Order)
		for len(lanes) <= at {
			lanes = append(lanes, nil)
		}
		if s := b.Plans[r].Session; s != "" {
			if l, ok := lane[s]; ok {
				at = l
			}
			lane[s] = at
		}
		lanes[at] = append(lanes[at], r)
	}
	return lanes
}

// PlanBatch plans many requests of one scope together (ContextPilot's offline mode, §7.1): it orders them with
// the policy's batch algorithm if it has one, otherwise one by one in input order, and schedules them so that
// requests that share a prefix run next to each other. Requests of one session keep their order, and the index has
// each behind the one before it unless Behind says otherwise. Requests that continue a conversation (Prior is set) share with no other;
// they keep retrieval order, as far as Limits allow.
//
// The index is left as Plan on each request in Order would leave it. The batch algorithm runs without any lock,
// on what the batch holds; its time and memory are the policy's (`paper`: O(n²)). A cancelled ctx returns its
// error, and nothing is recorded. An error wrapping ErrBadRequest names the request that cannot be planned.
func (p *Pilot) PlanBatch(ctx context.Context, reqs []Request) (Batch, error) {
	if err := checkBatch(reqs); err != nil {
		return Batch{}, err
	}
	began := p.cfg.Now()
	drafts := make([]*draft, len(reqs))
	var heads, rest []int // requests that begin a prompt, and those that continue one
	var first []*draft    // of heads
	for i := range reqs {
		if err := ctx.Err(); err != nil {
			return Batch{}, err
		}
		drafts[i] = p.prepareOne(&reqs[i])
		if len(drafts[i].start) > 0 || drafts[i].plan.Fault != nil {
			rest = append(rest, i)
		} else {
			heads, first = append(heads, i), append(first, drafts[i])
		}
	}
	b := Batch{Plans: make([]Plan, len(reqs))}
	groups, err := p.orderBatch(ctx, first)
	if ctx.Err() != nil {
		return Batch{}, ctx.Err()
	}
	if err != nil { // as in Plan: retrieval order, and the plan has the fault
		for _, d := range first {
			d.plan.Fault = err
		}
		groups = [][]int{identity(nil, len(first))}
	}
	for _, g := range groups {
		for i, at := range g {
			g[i] = heads[at]
		}
	}
	for _, i := range rest {
		groups = append(groups, []int{i})
		p.nearestAlone(drafts[i])
	}
	b.Order, b.Groups = keepTurns(reqs, groups)
	ends := map[string]Position{} // by session
	for _, i := range b.Order {
		p.goOn(drafts[i], &reqs[i], ends[reqs[i].Session])
		p.commit(drafts[i], &reqs[i])
		if s := reqs[i].Session; s != "" {
			ends[s] = drafts[i].plan.End
		}
		b.Plans[i] = drafts[i].plan
		p.done(&b.Plans[i], began)
		drafts[i] = nil // no longer needed, and large
	}
	return b, nil
}

func checkBatch(reqs []Request) error {
	seen := make(map[string]int, len(reqs))
	for i := range reqs {
		if reqs[i].Scope != reqs[0].Scope {
			return fmt.Errorf("%w: request %d: Scope %+v, but request 0 has %+v", ErrBadRequest, i, reqs[i].Scope, reqs[0].Scope)
		}
		if id := reqs[i].ID; id != "" {
			if j, twice := seen[id]; twice {
				return fmt.Errorf("%w: request %d: ID %q is that of request %d", ErrBadRequest, i, id, j)
			}
			seen[id] = i
		}
	}
	return nil
}

// prepareOne runs the stages before the order; a fault is kept in the plan.
func (p *Pilot) prepareOne(req *Request) *draft {
	d := p.draft(req)
	if d.plan.Fault = p.prepare(d, req); d.plan.Fault == nil {
		d.setOrder(identity(nil, len(d.free)))
	}
	return d
}

// orderBatch orders and schedules drafts that begin a prompt; groups are of positions in drafts. The steps: a policy of its own gets a
// query for each draft and an empty index, what it returns is checked as a whole, and only then do drafts take their orders. Where
// limits changed these, the schedule follows what is sent. An error is a fault of the reorder stage, or ctx's.
func (p *Pilot) orderBatch(ctx context.Context, drafts []*draft) (groups [][]int, err error) {
	err = p.guard(stageReorder, func() error {
		policy, index := p.cfg.NewPolicy(), tree.New(0, 0, nil)
		batch, ok := policy.(BatchPolicy)
		if !ok {
			batch = oneByOne{policy, index}
		}
		qs := make([]Query, len(drafts))
		for i, d := range drafts {
			blocks := d.query(make([]Candidate, 0, len(d.free)))
			qs[i] = Query{Request: d.plan.RequestID, Blocks: blocks, Tree: View{t: index}, From: Root, gate: d.gate}
		}
		orders, schedule, runs, err := batch.OrderBatch(ctx, qs)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // a cancelled batch is no fault of the policy's; the caller looks at ctx
		}
		if err != nil {
			return err
		}
		if err := checkOrders(qs, orders, schedule, runs); err != nil {
			return fmt.Errorf("policy %s: %w", policy.Name(), err)
		}
		for i, d := range drafts {
			d.setOrder(orders[i])
		}
		groups = runs
		moved := p.nearestOfAll(drafts, schedule)
		if moved || slices.ContainsFunc(drafts, func(d *draft) bool { return p.cfg.Limits.set() || d.plan.req.Fixed }) {
			_, groups = depthFirst(keysOf(drafts))
		}
		return nil
	})
	return groups, err
}

// checkOrders reports what is wrong with a policy's answer to queries.
func checkOrders(qs []Query, orders [][]int, schedule []int, groups [][]int) error {
	var seen []bool
	if !permutation(schedule, len(qs), &seen) || len(orders) != len(qs) || !slices.Equal(slices.Concat(groups...), schedule) {
		return fmt.Errorf("schedule %v, groups %v of %d requests", schedule, groups, len(qs))
	}
	for i, order := range orders {
		if !permutation(order, len(qs[i].Blocks), &seen) {
			return fmt.Errorf("order %v of %d blocks", order, len(qs[i].Blocks))
		}
	}
	return nil
}

// keysOf returns the blocks of each draft in the order in which they are sent.
func keysOf(drafts []*draft) [][]Key {
	keys := make([][]Key, len(drafts))
	for i, d := range drafts {
		for _, j := range d.order {
			keys[i] = append(keys[i], d.ids[j].key)
		}
	}
	return keys
}

// oneByOne makes a BatchPolicy of any policy: it plans in input order, as Plan would, and runs the result depth first.
type oneByOne struct {
	Policy
	index *tree.Tree
}

// OrderBatch asks the policy about one query after the other.
func (o oneByOne) OrderBatch(ctx context.Context, qs []Query) (orders [][]int, schedule []int, groups [][]int, err error) {
	keys := make([][]Key, len(qs))
	learner, _ := o.Policy.(Learner)
	for i, q := range qs {
		if err := ctx.Err(); err != nil {
			return nil, nil, nil, err
		}
		order := o.Order(nil, q)
		var path []tree.Elem
		for _, j := range order {
			keys[i] = append(keys[i], q.Blocks[j].Key)
			path = append(path, tree.Elem{Key: uint64(q.Blocks[j].Key), Tokens: int32(q.Blocks[j].Tokens)})
		}
		if len(path) > 0 {
			o.index.Insert(q.Request, path)
		}
		if learner != nil {
			learner.Sent(q.Request, q, order)
		}
		orders = append(orders, order)
	}
	schedule, groups = depthFirst(keys)
	return orders, schedule, groups, nil
}

// keepTurns moves a request that would run before an earlier one of its session to right behind that one.
func keepTurns(reqs []Request, groups [][]int) (order []int, out [][]int) {
	turns := map[string][]int{} // session → its requests that have not run, in input order
	for i := range reqs {
		if s := reqs[i].Session; s != "" {
			turns[s] = append(turns[s], i)
		}
	}
	waiting := map[int]bool{}
	for _, g := range groups {
		var run []int
		for _, i := range g {
			s := reqs[i].Session
			if s == "" {
				run = append(run, i)
				continue
			}
			waiting[i] = true
			for len(turns[s]) > 0 && waiting[turns[s][0]] {
				run = append(run, turns[s][0])
				turns[s] = turns[s][1:]
			}
		}
		if len(run) > 0 {
			order = append(order, run...)
			out = append(out, run)
		}
	}
	return order, out
}

// commit records a batch's draft: notes, index.
func (p *Pilot) commit(d *draft, req *Request) {
	sc := p.scope(req.Scope, p.cfg.Now())
	if req.ID != "" {
		sc.withdraw(req.ID)
	}
	p.finish(d, d.plan.Fault, sc)
	p.enter(sc, d)
}

// goOn puts a batch's draft behind the turn of its conversation that the batch has planned before it, unless the request says where
// it goes on.
func (p *Pilot) goOn(d *draft, req *Request, at Position) {
	if at == (Position{}) || req.Behind != (Position{}) || d.plan.Fault != nil {
		return
	}
	d.behind = at
	if p.guard(stageIndex, func() error { d.look(req.Prior, p); return nil }) != nil {
		d.unknown(req)
	}
}

// awaiter is a Policy that can make use of knowing which requests are about to follow.
type awaiter interface{ Await(requests [][]Key) }

// PlanTogether plans requests that arrived at about the same time, one after the other as [Pilot.Plan] does; the policy knows the ones
// that follow. Only first turns are awaited: later ones share nothing. One list is planned at a time; requests planned by Plan
// meanwhile know what it awaits, too.
func (p *Pilot) PlanTogether(reqs []Request) []Plan {
	p.together.Lock()
	defer p.together.Unlock()
	plans := make([]Plan, len(reqs))
	keys := make([][]Key, len(reqs))
	defer func() {
		for i := range reqs {
			p.await(reqs[i].Scope, nil)
		}
	}()
	for i := range reqs {
		if len(reqs[i].Prior) > 0 {
			continue
		}
		for _, x := range identify(nil, reqs[i].Blocks, p.cfg.Dedup) {
			keys[i] = append(keys[i], x.key)
		}
	}
	for i := range reqs {
		var next [][]Key
		for j := i + 1; j < len(reqs); j++ {
			if reqs[j].Scope == reqs[i].Scope {
				next = append(next, keys[j])
			}
		}
		p.await(reqs[i].Scope, next)
		plans[i] = p.Plan(reqs[i])
	}
	return plans
}

func (p *Pilot) await(scope Scope, next [][]Key) {
	sc := p.findScope(scope)
	if sc == nil && next != nil {
		sc = p.scope(scope, p.cfg.Now())
	}
	if sc == nil {
		return
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if a, ok := sc.policy.(awaiter); ok {
		_ = p.guard(stageReorder, func() error { a.Await(next); return nil })
	}
}
