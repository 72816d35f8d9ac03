package compat

import (
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/internal/sidecar/compat/recorded"
	"github.com/ragpilot/ragpilot/internal/sidecar/tenant"
)

const (
	// maxTemplate is how many characters a template of hints may have: it is repeated for each document that was shown.
	maxTemplate = 4096
	// maxHints bounds the hints of an answer if their template is the client's, in bytes of JSON. 1,000,000 of the usual ones
	// take half of it; those are bounded by the documents of the request.
	maxHints = 128 << 20
)

// hint is a template of references to earlier turns.
type hint struct {
	recorded.Hint
	size int // in bytes of JSON; 0: the usual one
}

// hint reads the template; if it will be used, it must be one.
func (d *decoder) hint(used bool) (h hint) {
	const name = "hint_template"
	s := d.text(name, "", true)
	if !used || s == "" {
		return h
	}
	v, _ := d.body.member(name)
	if utf8.RuneCountInString(s) > maxTemplate {
		p := d.wrong("string_too_long", fmt.Sprintf("String should have at most %d characters", maxTemplate), v, name)
		p.Ctx = map[string]any{"max_length": maxTemplate}
		return h
	}
	var err error
	if h.Hint, err = recorded.ParseHint(s); err != nil {
		what := strings.TrimPrefix(err.Error(), name+": ")
		d.wrong("value_error", "Value error, "+what, v, name).Ctx = map[string]any{"error": what}
	}
	h.size = len(v.raw)
	return h
}

// checkHints refuses a batch whose hints could be too long: if all documents of contexts that have a parent had been shown.
// Turn numbers and IDs are not longer than their placeholders.
func (b *batch) checkHints(h hint, parents []string) error {
	if h.size == 0 {
		return nil
	}
	docs, bytes := 0, 0
	for i, c := range b.contexts {
		if i >= len(parents) || parents[i] == "" {
			continue
		}
		docs += len(c.items)
		for _, v := range c.items {
			bytes += len(v.raw)
		}
	}
	if n := docs*h.size + h.Docs()*bytes; n > maxHints {
		return fail(http.StatusRequestEntityTooLarge,
			fmt.Sprintf("hint_template: hints of up to %d bytes, at most %d are allowed", n, maxHints))
	}
	return nil
}

// dedupBatch enters each context of a batch into the histories, as the turn after its parent: context, ID and parent are
// those of the same input position. The documents stand in the order of positions.
func (s *state) dedupBatch(q reorderRequest, ids []string, positions [][]int) *dedupJSON {
	out := &dedupJSON{Enabled: true, Results: make([]dedupContext, len(ids))}
	s.Lock()
	defer s.Unlock()
	for i, id := range ids {
		parent := ""
		if i < len(q.parents) {
			parent = q.parents[i]
		}
		docs, turn := s.dedup(q.batch, i, positions[i], id, parent, q.hint)
		out.Results[i] = dedupContext{RequestID: id, dedupDocs: docs}
		out.TotalDocsDeduplicated += len(turn.Overlapping)
		s.Pause()
	}
	return out
}

// dedup enters one context, with its items at these positions, as the turn id after parent. The lock is held.
func (s *state) dedup(b *batch, i int, positions []int, id, parent string, h hint) (dedupDocs, recorded.Deduped[key]) {
	c := b.contexts[i]
	keys := make([]key, len(positions))
	for j, p := range positions {
		keys[j] = b.docs[c.all[p]].key
	}
	name := func(j int) string { return b.docs[c.all[positions[j]]].name() }
	turn := s.chains.Add(id, parent, keys, h.Hint, name)
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
	}, turn
}

// deduplicate is POST /deduplicate. It needs no index.
func (a *API) deduplicate(r *http.Request, d *decoder) (any, error) {
	b := d.contexts("contexts", a.limits())
	parents := d.requiredList("parent_request_ids")
	names := d.parents(parents, "parent_request_ids")
	h := d.hint(true)
	if err := d.done(); err != nil {
		return nil, err
	}
	if len(parents) != len(b.contexts) {
		return nil, fail(http.StatusBadRequest, fmt.Sprintf("contexts and parent_request_ids must have same length (got %d vs %d)",
			len(b.contexts), len(parents)))
	}
	if err := b.checkHints(h, names); err != nil {
		return nil, err
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
		docs, turn := s.dedup(b, i, positions, id, names[i], h)
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
