package engines

import (
	"fmt"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// Assignment says which scope takes which request.
type Assignment struct {
	// To is by request: the index of its scope.
	To []int
	// Prefill is what is left to compute of all requests, in tokens.
	Prefill int
}

// Assign gives each request a scope of its own, so that together they leave least to compute. It is for agents that share
// the work on a question and begin their prompts with instructions of their own, so that what one has read is of no
// use to another: a document goes to the agent that has read it before (ContextPilot §7.2, on Chain-of-Agents). Each agent is a
// scope, whether it has an engine of its own or not; the scopes of the requests are ignored.
//
// The assignment is the best one of what is resident now, and the same for the same state. It is not planned: plan request i with
// Scope scopes[To[i]] next. It is an error if there are more requests than scopes, or a scope is there twice. Time: one
// [contextpilot.Pilot.MatchReplicas] for each request, then O(requests² × scopes).
func Assign(pilot *contextpilot.Pilot, requests []contextpilot.Request, scopes []contextpilot.Scope) (Assignment, error) {
	if len(requests) > len(scopes) {
		return Assignment{}, fmt.Errorf("engines: assign %d requests to %d scopes: want one for each", len(requests), len(scopes))
	}
	groups, err := groupScopes(scopes)
	if err != nil {
		return Assignment{}, err
	}
	left := make([][]int, len(requests))
	for i, req := range requests {
		left[i] = make([]int, len(scopes))
		for _, g := range groups {
			req.Scope = g.of
			for k, m := range pilot.MatchReplicas(req, g.names...) {
				left[i][g.at[k]] = m.Prompt - m.Tokens
			}
		}
	}
	out := Assignment{To: cheapest(left)}
	for i, j := range out.To {
		out.Prefill += left[i][j]
	}
	return out, nil
}

// scopeGroup is the scopes of one model and tenant.
type scopeGroup struct {
	of    contextpilot.Scope
	names []string // of the replicas
	at    []int    // their scopes' indexes
}

func groupScopes(scopes []contextpilot.Scope) ([]*scopeGroup, error) {
	var out []*scopeGroup
	groups, seen := map[contextpilot.Scope]*scopeGroup{}, map[contextpilot.Scope]int{}
	for i, s := range scopes {
		if j, twice := seen[s]; twice {
			return nil, fmt.Errorf("engines: assign: scope %d is %+v, as scope %d", i, s, j)
		}
		seen[s] = i
		of := contextpilot.Scope{Model: s.Model, Tenant: s.Tenant}
		g := groups[of]
		if g == nil {
			g = &scopeGroup{of: of}
			groups[of] = g
			out = append(out, g)
		}
		g.names, g.at = append(g.names, s.Replica), append(g.at, i)
	}
	return out, nil
}
