package compat

import (
	"net/http"

	"github.com/ragpilot/ragpilot/engines/evict"
	"github.com/ragpilot/ragpilot/internal/sidecar/tenant"
)

// evict is POST /evict: requests whose prompts the engine's cache has dropped leave the index, and the conversations that
// end in them are forgotten. Beyond the reference's request_ids it takes prefixes, as [evict.Handler] does: requests of
// which only the first tokens are left. The index has no place for those; OnShrunk gets them.
//
// Without an index the answer is the reference's 503, after the report was passed on. The engines' plugins know by its text
// that they need not repeat the report, as they do after any other 503.
func (a *API) evict(r *http.Request, d *decoder) (any, error) {
	given, shrunk := d.evicted()
	if err := d.done(); err != nil {
		return nil, err
	}
	name := tenant.From(r.Context())
	s := a.look(name)
	ids := evict.Normalize(given)
	s.Lock()
	named := s.named(ids)
	left := s.left(shrunk, named)
	s.Unlock()
	a.opt.OnEvict(name, named)
	out := evictAnswer{
		Status: "success", NormalizedRequestIDs: ids,
		EvictedNodeIDs: []int{}, EvictedRequestIDs: []string{}, NotFound: []string{},
	}
	for _, p := range left {
		a.opt.OnShrunk(name, p.ID, p.Tokens)
		out.ShrunkRequestIDs = append(out.ShrunkRequestIDs, p.ID)
	}
	return a.withIndex(r, func(s *state) (any, error) {
		s.remove(named, &out)
		st := s.live.index.Stats()
		out.NodesRemaining, out.RequestsRemaining = st.Nodes, st.Requests
		return out, nil
	})
}

// Evicted takes request IDs that a tenant's engine has dropped, from elsewhere than POST /evict. OnEvict is not called.
func (a *API) Evicted(tenant string, ids ...string) {
	defer a.weigh(tenant) // without the lock
	s := a.look(tenant)
	s.Lock()
	defer s.Unlock()
	if s.hasIndex() {
		s.remove(ids, &evictAnswer{})
	}
}

// remove takes requests out of the index. The lock is held.
func (s *state) remove(ids []string, out *evictAnswer) {
	for _, id := range ids {
		gone := s.live.index.Remove(id)
		out.ConversationsCleared += s.chains.Clear(id)
		if !gone.Known {
			out.NotFound = append(out.NotFound, id)
			continue
		}
		out.EvictedRequestIDs = append(out.EvictedRequestIDs, id)
		if gone.Held {
			out.RemovedCount++
		}
		if gone.Node >= 0 {
			out.EvictedNodeIDs = append(out.EvictedNodeIDs, gone.Node)
		}
		s.Pause()
	}
}

// left names the requests of prefixes, each once, without those that are gone. The lock is held.
func (s *state) left(prefixes []evict.Prefix, gone []string) []evict.Prefix {
	seen := make(map[string]bool, len(gone)+len(prefixes))
	for _, id := range gone {
		seen[id] = true
	}
	out := make([]evict.Prefix, 0, len(prefixes))
	for _, p := range prefixes {
		for _, id := range s.named(evict.Normalize([]string{p.ID})) {
			if !seen[id] {
				seen[id] = true
				out = append(out, evict.Prefix{ID: id, Tokens: p.Tokens})
			}
		}
	}
	return out
}

// evicted reads the body of /evict. A request of which nothing is left is gone, whichever member names it.
func (d *decoder) evicted() (gone []string, shrunk []evict.Prefix) {
	prefixes, partly := d.body.member("prefixes")
	if _, whole := d.body.member("request_ids"); whole || !partly {
		items := d.requiredList("request_ids")
		gone = make([]string, len(items))
		for i, v := range items {
			gone[i] = d.str(v, "request_ids", i)
		}
	}
	if !partly {
		return gone, nil
	}
	for i, v := range d.list(prefixes, "prefixes") {
		p, ok := d.prefix(v, i)
		switch {
		case !ok:
		case p.Tokens == 0:
			gone = append(gone, p.ID)
		default:
			shrunk = append(shrunk, p)
		}
	}
	return gone, shrunk
}

// prefix reads one of the prefixes.
func (d *decoder) prefix(v value, i int) (p evict.Prefix, ok bool) {
	if v.kind != kindObject {
		d.wrong("model_attributes_type", "Input should be a valid dictionary or object to extract fields from", v, "prefixes", i)
		return p, false
	}
	at := func(name string) []any { return []any{"prefixes", i, name} }
	id, hasID := v.member("request_id")
	tokens, hasTokens := v.member("resident_tokens")
	if !hasID {
		d.add(missing(append([]any{"body"}, at("request_id")...), v))
	}
	if !hasTokens {
		d.add(missing(append([]any{"body"}, at("resident_tokens")...), v))
	}
	if !hasID || !hasTokens {
		return p, false
	}
	p.ID = d.str(id, at("request_id")...)
	n := d.integer(tokens, at("resident_tokens")...)
	if n < 0 {
		p := d.wrong("greater_than_equal", "Input should be greater than or equal to 0", tokens, at("resident_tokens")...)
		p.Ctx = map[string]any{"ge": 0}
	}
	p.Tokens = int(min(max(n, 0), maxTokens))
	return p, true
}

// named replaces engines' names of requests by the IDs that the index knows, each once. The lock is held.
func (s *state) named(ids []string) []string {
	out := make([]string, 0, len(ids))
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		if known, ok := evict.Match(id, s.live.index.Known); ok {
			id = known
		}
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
		s.Pause()
	}
	return out
}

// reset is POST /reset: the index, its documents' numbers and all histories are forgotten. The body is ignored.
func (a *API) reset(r *http.Request) (any, error) {
	name := tenant.From(r.Context())
	had := a.look(name).reset()
	a.opt.OnReset(name)
	out := resetAnswer{Status: "success", Message: "No index to reset (was not initialized)", ConversationTracker: "reset"}
	if had {
		out.Message = "Index reset to initial state"
	}
	return out, nil
}
