package compat

import (
	"net/http"

	"github.com/ragpilot/ragpilot/internal/sidecar/compat/recorded"
	"github.com/ragpilot/ragpilot/internal/sidecar/tenant"
)

// reset begins a new generation and reports whether there was an index.
func (s *state) reset() (had bool) {
	s.Lock()
	defer s.Unlock()
	s.chains = recorded.NewChains[key](s.limit)
	if s.begun = s.hasIndex(); s.begun {
		s.live = newGeneration(s.limit)
	}
	return s.begun
}

// search is POST /search.
func (a *API) search(r *http.Request, d *decoder) (any, error) {
	b := d.context("context", a.limits())
	d.boolean("update_access", true) // requests leave by age: a look does not make one younger
	if err := d.done(); err != nil {
		return nil, err
	}
	return a.withIndex(r, func(s *state) (any, error) {
		g := s.live
		for i := range b.docs {
			b.docs[i].live, b.docs[i].seen = g.docs.Take(b.docs[i].key)
		}
		found := g.index.Search(b.live(0))
		for _, d := range b.docs {
			g.docs.Drop(d.live)
		}
		return searchAnswer{
			Status: "success", SearchPath: found.Path, NodeID: found.Node,
			PrefixLength: found.Overlap, HasPrefix: found.Prefix, Overlap: found.Overlap,
		}, nil
	})
}

// insert is POST /insert: a context goes where the client says, in the client's order.
func (a *API) insert(r *http.Request, d *decoder) (any, error) {
	b := d.context("context", a.limits())
	items := d.requiredList("search_path")
	path := make([]int, len(items))
	for i, v := range items {
		path[i] = int(d.integer(v, "search_path", i))
	}
	tokens := d.tokens("total_tokens")
	if err := d.done(); err != nil {
		return nil, err
	}
	s := a.look(tenant.From(r.Context()))
	if !s.initialized() {
		return nil, notInitialized
	}
	g, ids := s.take(b)
	defer s.drop(g, b)
	s.Lock()
	defer s.Unlock()
	p := g.index.Insert(ids[0], b.live(0), path, tokens)
	return insertAnswer{Status: "success", NodeID: p.Node, SearchPath: p.Path, RequestID: ids[0]}, nil
}
