package httpapi

import (
	"net/http"

	"github.com/ragpilot/ragpilot/engines/evict"
	"github.com/ragpilot/ragpilot/internal/tenant"
)

// evict is POST /evict: requests whose prompts the engine's cache has dropped leave the index, and the conversations that
// end in them are forgotten.
func (a *API) evict(r *http.Request) (any, error) {
	d, err := decode(r)
	if err != nil {
		return nil, err
	}
	items := d.requiredList("request_ids")
	given := make([]string, len(items))
	for i, v := range items {
		given[i] = d.str(v, "request_ids", i)
	}
	if err := d.done(); err != nil {
		return nil, err
	}
	name := tenant.From(r.Context())
	s := a.look(name)
	ids := evict.Normalize(given)
	s.Lock()
	named := s.named(ids)
	s.Unlock()
	a.opt.OnEvict(name, named)
	out := evictAnswer{
		Status: "success", NormalizedRequestIDs: ids,
		EvictedNodeIDs: []int{}, EvictedRequestIDs: []string{}, NotFound: []string{},
	}
	s.Lock()
	defer s.Unlock()
	if !s.hasIndex() {
		return nil, notInitialized
	}
	for _, id := range named {
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
	st := s.live.index.Stats()
	out.NodesRemaining, out.RequestsRemaining = st.Nodes, st.Requests
	return out, nil
}

// named replaces engines' names of requests by the IDs that the index knows, each told once, for who holds the lock.
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
