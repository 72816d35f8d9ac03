package contextpilot_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// A tenant that has no more scopes than its share loses none to another, however many that one makes.
func TestScopesOfATenantAreItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 12).Draw(t, "scopes")
		p, err := contextpilot.New(contextpilot.Config{MaxScopes: limit})
		if err != nil {
			t.Fatal(err)
		}
		count := func() map[string]int {
			n := map[string]int{}
			for _, s := range p.Scopes() {
				n[s.Tenant]++
			}
			return n
		}
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			before := count()
			by := rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "tenant")
			s := contextpilot.Scope{Tenant: by, Replica: fmt.Sprint(rapid.IntRange(0, 20).Draw(t, "scope"))}
			p.Plan(contextpilot.Request{Scope: s, Blocks: blocks("x")})
			if !slices.Contains(p.Scopes(), s) {
				t.Fatalf("%v was just used and has no index", s)
			}
			after, all := count(), 0
			for _, n := range after {
				all += n
			}
			if all > limit {
				t.Fatalf("%d scopes", all)
			}
			tenants := len(before)
			if before[by] == 0 {
				tenants++
			}
			for name, n := range before {
				if after[name] < n && n <= limit/tenants {
					t.Fatalf("%q has lost one of %d scopes to %q, of %d for %d tenants", name, n, by, limit, tenants)
				}
			}
		}
		if err := p.Check(); err != nil {
			t.Error(err)
		}
	})
}

// A reader of an index walks from the requests back to where prompts begin, and changes nothing.
func TestView(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Policy: "retrieval", Capacity: 1000})
	scope := contextpilot.Scope{Tenant: "t"}
	if p.View(scope, func(contextpilot.View) { t.Error("there is an index") }) {
		t.Error("there is an index")
	}
	a, b, c := contextpilot.Block{ID: "a", Tokens: 10}, contextpilot.Block{ID: "b", Tokens: 20}, contextpilot.Block{ID: "c", Tokens: 40}
	for _, list := range [][]contextpilot.Block{{a, b}, {a, c}, nil} {
		p.Plan(contextpilot.Request{Scope: scope, Blocks: list})
	}
	var ends []int
	look := func(v contextpilot.View) {
		for n := range v.Latest() {
			for ; n != contextpilot.Root; n = v.Parent(n) {
				ends = append(ends, v.Tokens(n))
			}
		}
		if live, tokens := v.Size(); live != 3 || tokens != 70 || v.Capacity() != 1000 {
			t.Errorf("%d live requests of %d tokens, capacity %d", live, tokens, v.Capacity())
		}
		if n := v.Parent(contextpilot.Root); n != contextpilot.NoNode || v.Parent(n) != n {
			t.Errorf("in front of the root: %d", n)
		}
	}
	func() {
		defer func() { _ = recover() }()
		p.View(scope, func(contextpilot.View) { panic("no") })
	}()
	if !p.View(scope, look) || !slices.Equal(ends, []int{50, 10, 30, 10}) {
		t.Errorf("paths through tokens %v", ends)
	}
}

// The bound on requests is for all scopes together, and the tenant with most of them pays.
func TestMaxRequestsOfAllScopes(t *testing.T) {
	for _, policy := range contextpilot.PolicyNames() {
		p := newPilot(t, contextpilot.Config{Policy: policy, MaxRequests: 10})
		plan := func(tenant, replica, id string) {
			p.Plan(contextpilot.Request{ID: id, Scope: contextpilot.Scope{Tenant: tenant, Replica: replica}, Blocks: blocks(id, "x")})
		}
		served := func(tenant, replica, id string) int {
			return p.Observe(contextpilot.Event{Kind: contextpilot.Served, Scope: contextpilot.Scope{Tenant: tenant, Replica: replica}, Request: id})
		}
		plan("quiet", "1", "q1")
		plan("quiet", "2", "q2")
		for i := range 40 {
			plan("busy", fmt.Sprint(i%3), fmt.Sprint(i))
			if n := p.Stats().LiveRequests; n > 10 {
				t.Fatalf("%s: %d requests", policy, n)
			}
		}
		equal(t, "of a quiet tenant", 2, served("quiet", "1", "q1")+served("quiet", "2", "q2"))
		equal(t, "the oldest went", 0, served("busy", "0", "0"))
		equal(t, "the newest is there", 1, served("busy", "0", "39"))
		if st := p.Stats(); st.LiveRequests != 10 || st.RequestsDropped != 32 {
			t.Errorf("%s: %+v", policy, st)
		}
		dropped := p.Stats().RequestsDropped
		p.Observe(contextpilot.Event{Kind: contextpilot.Cleared, Scope: contextpilot.Scope{Tenant: "busy", Replica: "0"}})
		for i := range 10 - p.Stats().LiveRequests { // there is room for as many as have left
			plan("busy", "new", fmt.Sprint("n", i))
		}
		equal(t, "dropped of those", dropped, p.Stats().RequestsDropped)
		lost := p.Stats().LiveRequests
		p.DropReplica("new")
		lost -= p.Stats().LiveRequests
		for i := range lost {
			plan("busy", "newer", fmt.Sprint("m", i))
		}
		equal(t, "live again", 10, p.Stats().LiveRequests)
		if err := p.Check(); err != nil {
			t.Error(err)
		}
	}
}

// What is known of a tenant is forgotten together, and nothing of another.
func TestDropTenant(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	prompts, ends := map[string]string{}, map[string]contextpilot.Position{}
	for _, tenant := range []string{"a", "b"} {
		for _, replica := range []string{"1", "2"} {
			plan := p.Plan(contextpilot.Request{
				Session: "s" + replica, Scope: contextpilot.Scope{Tenant: tenant, Replica: replica},
				Blocks: blocks("x", "y"),
			})
			prompts[tenant], ends[tenant] = plan.Prompt("q"), plan.End
		}
	}
	equal(t, "dropped", 2, p.DropTenant("a"))
	equal(t, "again", 0, p.DropTenant("a"))
	st := p.Stats()
	equal(t, "scopes and requests left", []int64{2, 2}, []int64{st.Scopes, st.LiveRequests})
	for tenant, known := range map[string]bool{"a": false, "b": true} {
		next := p.Plan(contextpilot.Request{
			Scope: contextpilot.Scope{Tenant: tenant, Replica: "2"}, Blocks: blocks("x", "y",
				"z"), Prior: []string{prompts[tenant]}, Behind: ends[tenant],
		})
		equal(t, "references of "+tenant, "x y", refs(next)) // what is sent shows them
		equal(t, "expected in the cache of "+tenant, known, next.Prefix.Tokens > 0)
	}
}
