package retrievertest

import (
	"errors"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// checkTenants: each tenant sees its own documents, under the same IDs as others, and nothing else.
func checkTenants(t *testing.T, s Subject) {
	if s.Tenants == nil {
		t.Skip("the subject has no Tenants")
	}
	x := s.Tenants(t)
	names := []string{"acme", "ACME", "acm", "a b", `"quoted"`, "ünï", "acme*"}
	for _, name := range names {
		upsert(t, x,
			store.Document{Tenant: name, ID: "plan", Text: "The secret plan of " + name + "."},
			store.Document{Tenant: name, ID: "note", Text: "A note about the plan."})
	}
	in := func(name string) []store.Hit {
		return find(t, x, store.Query{Tenant: name, Text: "secret plan", K: 50})
	}
	for _, name := range names {
		hits := in(name)
		if got := ids(hits); !slices.Equal(got, []string{"plan", "note"}) {
			t.Errorf("%q found %q, want its plan and its note", name, got)
			continue
		}
		if want := "The secret plan of " + name + "."; hits[0].Text != want {
			t.Errorf("%q was shown %q", name, hits[0].Text)
		}
	}
	if hits := in("nobody"); len(hits) != 0 {
		t.Errorf("a tenant without documents found %q", ids(hits))
	}

	if err := x.Delete(within(t), "acme", "plan"); err != nil {
		t.Fatal(err)
	}
	if got := ids(in("acme")); !slices.Equal(got, []string{"note"}) {
		t.Errorf("after Delete: %q", got)
	}
	if got := ids(in("ACME")); len(got) != 2 {
		t.Errorf("deleting another tenant's document left %q", got)
	}

	others := store.Any(store.Eq("tenant", "ACME"), store.Not(store.Eq("tenant", "acme")))
	for _, h := range find(t, x, store.Query{Tenant: "acme", Text: "secret plan", K: 50, Filter: others}) {
		if h.Text != "A note about the plan." {
			t.Errorf("a filter led to %q", h.Text)
		}
	}
	if _, err := x.Search(within(t), store.Query{Text: "plan", K: 5}); !errors.Is(err, store.ErrBadQuery) {
		t.Errorf("a query without tenant: %v, want ErrBadQuery", err)
	}
	if err := x.Upsert(within(t), []store.Document{doc("a", "A page.")}); !errors.Is(err, store.ErrBadDocument) {
		t.Errorf("a document without tenant: %v, want ErrBadDocument", err)
	}
	if err := x.Delete(within(t), "", "note"); !errors.Is(err, store.ErrBadQuery) {
		t.Errorf("Delete without tenant: %v, want ErrBadQuery", err)
	}
}

// checkNoTenants: a store that does not separate tenants does not pretend to.
func checkNoTenants(t *testing.T, s Subject) {
	x := s.filled(t, animals()...)
	if _, err := x.Search(within(t), store.Query{Tenant: "acme", Text: "otter", K: 1}); !errors.Is(err, store.ErrBadQuery) {
		t.Errorf("Search: %v, want ErrBadQuery", err)
	}
	if err := x.Upsert(within(t), []store.Document{{Tenant: "acme", ID: "a", Text: "A page."}}); !errors.Is(err, store.ErrBadDocument) {
		t.Errorf("Upsert: %v, want ErrBadDocument", err)
	}
	if err := x.Delete(within(t), "acme", "otter"); !errors.Is(err, store.ErrBadQuery) {
		t.Errorf("Delete: %v, want ErrBadQuery", err)
	}
}
