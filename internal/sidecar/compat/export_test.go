package compat

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
)

// Paths returns the paths of all endpoints, sorted.
func Paths() []string { return slices.Sorted(maps.Keys(routes)) }

// Fixed are limits that do not change.
func Fixed(contexts, blocks int) func() (int, int) {
	return func() (int, int) { return contexts, blocks }
}

// Sizes are the entries of a tenant's tables, for tests that these are bounded.
type Sizes struct{ Docs, RootDocs, DocNumbers, Nodes, Requests, Turns, Times int }

// Sizes returns a tenant's.
func (a *API) Sizes(tenant string) Sizes {
	s := a.look(tenant)
	s.Lock()
	defer s.Unlock()
	tree := s.live.index.Tree()
	return Sizes{
		RootDocs: len(tree.Docs(tree.Root())),
		Docs:     s.live.docs.Len(), DocNumbers: s.live.docs.Max(), Nodes: s.live.index.Len(),
		Requests: s.live.index.Stats().Requests, Turns: s.chains.Len(), Times: len(s.times),
	}
}

// Tenants returns how many states are kept.
func (a *API) Tenants() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tenants.Len()
}

// Parse reads JSON with our parser and returns what it says as encoding/json would, or the text and place of an error.
func Parse(b []byte) (v any, msg string, at int) {
	parsed, err := parse(b)
	if bad, ok := errors.AsType[*syntaxError](err); ok {
		return nil, bad.msg, bad.at
	}
	return parsed.plain(), "", 0
}

func (v value) plain() any {
	switch v.kind {
	case kindText:
		return v.text()
	case kindList:
		out := []any{}
		for _, x := range v.items {
			out = append(out, x.plain())
		}
		return out
	case kindObject:
		out := map[string]any{}
		for i, name := range v.names {
			out[name] = v.items[i].plain()
		}
		return out
	}
	var out any
	_ = json.Unmarshal(v.raw, &out) // null, true, false, or a number of any size
	return out
}

// MaxTimes is how many times to the first token are kept.
const MaxTimes = maxTimes
