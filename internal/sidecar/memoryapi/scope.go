package memoryapi

import (
	"github.com/ragpilot/ragpilot/memory"
)

// scopeOf returns whose memories a filter can select at most: the IDs that it demands itself or in one of the filters
// that it joins by AND. top are those that stand beside the filter, as older clients send them.
func scopeOf(top ids, f *memory.Filter) memory.Scope {
	scope := top.scope()
	take := func(s memory.Scope) {
		for _, field := range []struct{ have, more *string }{{&scope.User, &s.User}, {&scope.Agent, &s.Agent}, {&scope.Run, &s.Run}} {
			if *field.have == "" {
				*field.have = *field.more
			}
		}
	}
	switch f.Op {
	case memory.OpEq:
		text, _ := f.Value.(string)
		switch f.Field {
		case "user_id":
			take(memory.Scope{User: text})
		case "agent_id":
			take(memory.Scope{Agent: text})
		case "run_id":
			take(memory.Scope{Run: text})
		}
	case memory.OpAnd:
		for i := range f.Of {
			take(scopeOf(ids{}, &f.Of[i]))
		}
	}
	return scope
}

// scopes returns the scopes that a search or a listing is about: one, or with a filter that is an OR at its top one for
// each of its branches.
func scopes(top ids, f *memory.Filter) ([]memory.Scope, error) {
	one := scopeOf(top, f)
	if one.Validate() == nil || f.Op != memory.OpOr || len(f.Of) == 0 {
		return []memory.Scope{one}, one.Validate()
	}
	out := make([]memory.Scope, len(f.Of))
	for i := range f.Of {
		out[i] = scopeOf(top, &f.Of[i])
		if err := out[i].Validate(); err != nil {
			return nil, err
		}
	}
	return out, nil
}
