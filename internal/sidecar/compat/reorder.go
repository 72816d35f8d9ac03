package compat

import (
	"net/http"
	"slices"

	"github.com/ragpilot/ragpilot/internal/paper"
	"github.com/ragpilot/ragpilot/internal/sidecar/compat/recorded"
	"github.com/ragpilot/ragpilot/internal/sidecar/tenant"
)

// reorderRequest is the body of /reorder and /build, and of /schedule, which reads only what is not live.
type reorderRequest struct {
	batch   *batch
	options paper.Options
	tokens  int
	dedup   bool
	parents []string // in input order; those that are missing are ""
	hint    hint
}

func (a *API) readReorder(d *decoder, live bool) (q reorderRequest, err error) {
	q.batch = d.contexts("contexts", a.limits())
	q.options.Alpha = d.number("alpha", paper.DefaultAlpha, 0, paper.MaxAlpha)
	d.boolean("use_gpu", false)
	linkage := d.oneOf("linkage_method", "average", paper.LinkageNames())
	if live {
		q.tokens = d.tokens("initial_tokens_per_context")
		if v, ok := d.body.member("parent_request_ids"); ok && v.kind != kindNull {
			q.parents = d.parents(d.list(v, "parent_request_ids"), "parent_request_ids")
		}
		q.dedup = d.boolean("deduplicate", false)
		q.hint = d.hint(q.dedup && !a.opt.Stateless)
	}
	if err := d.done(); err != nil {
		return q, err
	}
	if err := q.batch.checkHints(q.hint, q.parents); err != nil {
		return q, err
	}
	q.options.Linkage, err = paper.ParseLinkage(linkage)
	return q, err
}

// reorder is POST /reorder and POST /build.
func (a *API) reorder(r *http.Request, d *decoder) (any, error) {
	q, err := a.readReorder(d, true)
	if err != nil {
		return nil, err
	}
	if a.opt.Stateless {
		return a.reorderStateless(r, q)
	}
	s := a.state(tenant.From(r.Context()))
	g, ids := s.take(q.batch)
	defer s.drop(g, q.batch)
	q.batch.sort()
	docs := q.batch.docs
	st, err := g.index.Reorder(r.Context(), s, recorded.Job{
		Contexts: q.batch.sets(), IDs: ids, Tokens: q.tokens, Options: q.options, Cluster: a.cluster,
		Name: func(n paper.Doc) paper.Doc { return docs[n].live },
	})
	if err != nil {
		return nil, err
	}
	positions := make([][]int, len(st.Orders))
	for i, order := range st.Orders {
		positions[i] = q.batch.positions(i, order)
	}
	var dedup *dedupJSON
	if q.dedup {
		dedup = s.dedupBatch(q, ids, positions)
	}
	if st.Initial {
		return q.initial(st, positions, dedup), nil
	}
	return q.incremental(st, positions, dedup, a.opt.CompatIncrementalOrder), nil
}

// schedule is POST /schedule: no state is touched, whatever the mode.
func (a *API) schedule(r *http.Request, d *decoder) (any, error) {
	q, err := a.readReorder(d, false)
	if err != nil {
		return nil, err
	}
	return a.reorderStateless(r, q)
}

func (a *API) reorderStateless(r *http.Request, q reorderRequest) (any, error) {
	b := q.batch
	b.sort()
	c, err := a.cluster(r.Context(), q.options, b.sets())
	if err != nil {
		return nil, err
	}
	positions := make([][]int, len(c.Orders))
	for i, order := range c.Orders {
		positions[i] = b.positions(i, order)
	}
	contexts := b.rendered(positions, c.Order)
	return reorderStateless{
		reorderHead: q.head("Contexts reordered successfully (stateless mode)", "stateless"), NumGroups: len(c.Groups),
		ReorderedContexts: contexts, OriginalIndices: list(c.Order), ScheduledContexts: contexts,
		Groups: groups(c.Groups, func([]int) int { return 0 }),
		Stats: statelessStats{
			TotalNodes: c.Nodes, LeafNodes: c.Leaves, NumContexts: len(b.contexts), NumGroups: len(c.Groups),
		},
	}, nil
}

func (q reorderRequest) head(message, mode string) reorderHead {
	return reorderHead{Status: "success", Message: message, Mode: mode, InputType: q.batch.inputType(), NumContexts: len(q.batch.contexts)}
}

func (q reorderRequest) initial(st recorded.Step, positions [][]int, dedup *dedupJSON) reorderInitial {
	nodes := map[string]int{}
	for i, id := range st.IDs {
		if st.Nodes[i] >= 0 {
			nodes[id] = st.Nodes[i]
		}
	}
	return reorderInitial{
		reorderHead: q.head("Index built successfully", "initial"), InsertedCount: len(st.IDs), RequestIDMapping: nodes, RequestIDs: st.IDs,
		ReorderedContexts: q.batch.rendered(positions, st.Order), OriginalIndices: list(st.Order),
		Stats: newIndexStats(st.Stats), Deduplication: dedup,
	}
}

func (q reorderRequest) incremental(st recorded.Step, positions [][]int, dedup *dedupJSON, compat bool) reorderIncremental {
	input := make([]int, len(st.IDs))
	for i := range input {
		input[i] = i
	}
	out := reorderIncremental{
		reorderHead: q.head("Incremental reorder completed", "incremental"), MatchedCount: st.Matched, MergedCount: st.Merged, RequestIDs: st.IDs,
		ReorderedContexts: q.batch.rendered(positions, input), OriginalIndices: list(st.Order),
		Groups: groups(st.Groups, func(g []int) int { return len(g) }),
		Stats:  newIndexStats(st.Stats), Deduplication: dedup,
	}
	if !compat {
		out.ReorderedByInput = out.ReorderedContexts
		out.ReorderedContexts = q.batch.rendered(positions, st.Order)
	}
	return out
}

// rendered returns contexts in some order, each with its items as positions has them.
func (b *batch) rendered(positions [][]int, order []int) contextsJSON {
	out := make(contextsJSON, 0, len(order))
	for _, i := range order {
		out = append(out, b.contexts[i].render(positions[i]))
	}
	return out
}

func groups(of [][]int, score func([]int) int) []groupJSON {
	out := make([]groupJSON, 0, len(of))
	for _, g := range of {
		out = append(out, groupJSON{score(g), g})
	}
	return out
}

// list returns a list that is written as [] when it is empty.
func list(v []int) []int {
	if v == nil {
		return []int{}
	}
	return slices.Clip(v)
}
