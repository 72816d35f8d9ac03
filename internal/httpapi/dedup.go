package httpapi

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/ragpilot/ragpilot/internal/recorded"
	"github.com/ragpilot/ragpilot/internal/tenant"
)

// hint reads the template of references to earlier turns; if it will be used, its placeholders must be known.
func (d *decoder) hint(used bool) string {
	const name = "hint_template"
	s := d.text(name, "", true)
	if err := recorded.CheckHint(s); used && err != nil {
		v, _ := d.body.member(name)
		what := strings.TrimPrefix(err.Error(), name+": ")
		d.wrong("value_error", "Value error, "+what, v, name).Ctx = map[string]any{"error": what}
	}
	return s
}

// dedupBatch enters each context of a batch into the histories, as the turn after its parent: context, ID and parent are
// those of the same input position. The documents stand in the order of positions.
func (s *state) dedupBatch(q reorderRequest, ids []string, positions [][]int) (*dedupJSON, error) {
	out := &dedupJSON{Enabled: true, Results: make([]dedupContext, len(ids))}
	s.Lock()
	defer s.Unlock()
	for i, id := range ids {
		parent := ""
		if i < len(q.parents) {
			parent = q.parents[i]
		}
		docs, turn, err := s.dedup(q.batch, i, positions[i], id, parent, q.hint)
		if err != nil {
			return nil, err
		}
		out.Results[i] = dedupContext{RequestID: id, dedupDocs: docs}
		out.TotalDocsDeduplicated += len(turn.Overlapping)
		s.Pause()
	}
	return out, nil
}

// dedup enters one context, with its items at these positions, as the turn id after parent. The lock is held.
func (s *state) dedup(b *batch, i int, positions []int, id, parent, hint string) (dedupDocs, recorded.Deduped[key], error) {
	c := b.contexts[i]
	keys := make([]key, len(positions))
	for j, p := range positions {
		keys[j] = b.docs[c.all[p]].key
	}
	name := func(j int) string { return b.docs[c.all[positions[j]]].name() }
	turn, err := s.chains.AddNamed(id, parent, keys, hint, name)
	if err != nil {
		return dedupDocs{}, turn, fmt.Errorf("turn %s: %w", id, err)
	}
	var fresh, shown []int
	for j, p := range positions {
		if _, ok := turn.Sources[keys[j]]; ok {
			shown = append(shown, p)
		} else {
			fresh = append(fresh, p)
		}
	}
	left := c.render(fresh)
	return dedupDocs{
		OriginalDocs: c.render(positions), DeduplicatedDocs: left, OverlappingDocs: c.render(shown), NewDocs: left,
		ReferenceHints: turn.Hints,
	}, turn, nil
}

// deduplicate is POST /deduplicate. It needs no index.
func (a *API) deduplicate(r *http.Request) (any, error) {
	d, err := decode(r)
	if err != nil {
		return nil, err
	}
	b, err := d.contexts("contexts", a.opt)
	if err != nil {
		return nil, err
	}
	parents := d.requiredList("parent_request_ids")
	names := d.parents(parents, "parent_request_ids")
	hint := d.hint(true)
	if err := d.done(); err != nil {
		return nil, err
	}
	if len(parents) != len(b.contexts) {
		return nil, fail(http.StatusBadRequest, fmt.Sprintf("contexts and parent_request_ids must have same length (got %d vs %d)",
			len(b.contexts), len(parents)))
	}
	out := dedupAnswer{Status: "success", Message: "Deduplication completed", RequestIDs: []string{}, Results: []dedupTurn{}}
	out.Summary.TotalContexts = len(b.contexts)
	s := a.state(tenant.From(r.Context()))
	s.Lock()
	defer s.Unlock()
	for i, c := range b.contexts {
		id := ""
		for id == "" || s.chains.Has(id) {
			id = randomID("dedup_", 4)
		}
		positions := make([]int, len(c.items))
		for j := range positions {
			positions[j] = j
		}
		docs, turn, err := s.dedup(b, i, positions, id, names[i], hint)
		if err != nil {
			return nil, err
		}
		res := dedupTurn{RequestID: id, dedupDocs: docs, IsNewConversation: turn.IsNew}
		if parents[i].kind == kindText {
			res.ParentRequestID = &names[i]
		}
		if turn.IsNew {
			out.Summary.NewConversations++
		} else {
			out.Summary.ContinuedConversations++
		}
		out.Summary.TotalDocsDeduplicated += len(turn.Overlapping)
		out.RequestIDs, out.Results = append(out.RequestIDs, id), append(out.Results, res)
		s.Pause()
	}
	return out, nil
}
