package retrievertest

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// patience is how long one check may take, machines under load included. What takes longer hangs.
const patience = 2 * time.Minute

// check is one subtest.
type check struct {
	name string
	run  func(t *testing.T, s Subject)
}

// Run runs the suite, one subtest a property.
func Run(t *testing.T, s Subject) {
	t.Helper()
	for _, c := range []check{
		{"EmptyStore", checkEmpty},
		{"BestFirst", checkBestFirst},
		{"BadQueries", checkBadQueries},
		{"QueryIsPlainText", checkPlainText},
		{"TiesByID", checkTies},
		{"ShorterIsPrefix", checkPrefix},
		{"KAboveSize", checkLargeK},
		{"Reindex", checkReindex},
		{"Update", checkUpdate},
		{"Delete", checkDelete},
		{"ManyDocuments", checkMany},
		{"BadDocuments", checkBadDocuments},
		{"Metadata", checkMetadata},
		{"Filters", checkFilters},
		{"Unicode", checkUnicode},
		{"InvalidUTF8", checkInvalidUTF8},
		{"LargeDocument", checkLargeDocument},
		{"Canceled", checkCanceled},
		{"Parallel", checkParallel},
		{"Closed", checkClosed},
		{"Tenants", checkTenants},
		{"NoTenants", checkNoTenants},
		{"VectorStore", checkVectorStore},
		{"VectorStoreOptions", checkVectorStoreOptions},
		{"VectorStoreTenants", checkVectorStoreTenants},
		{"MissingIndex", checkMissing},
		{"Unauthorized", checkUnauthorized},
		{"Unavailable", checkUnavailable},
		{"HangingDeadline", checkDeadline},
		{"HangingCancel", checkHangingCancel},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, s) })
	}
}

// within returns a context that ends with the test, or when the check has hung for too long.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, context.DeadlineExceeded)
	t.Cleanup(cancel)
	return ctx
}

// noLeaks fails the test if, after its cleanups, goroutines live that did not live before. Call it first.
func (s Subject) noLeaks(t testing.TB) {
	opts := append([]goleak.Option{goleak.IgnoreCurrent()}, s.Leaks...)
	t.Cleanup(func() { goleak.VerifyNone(t, opts...) })
}

// filled returns a new store with the documents.
func (s Subject) filled(t testing.TB, docs ...store.Document) Store {
	t.Helper()
	x := s.New(t)
	upsert(t, x, docs...)
	return x
}

func upsert(t testing.TB, x Store, docs ...store.Document) {
	t.Helper()
	if err := x.Upsert(within(t), docs); err != nil {
		t.Fatalf("Upsert of %d documents: %v", len(docs), err)
	}
}

// find searches and checks what holds for every result.
func find(t testing.TB, x store.Searcher, q store.Query) []store.Hit {
	t.Helper()
	hits, err := x.Search(within(t), q)
	if err != nil {
		t.Fatalf("Search %.80q: %v", q.Text, err)
	}
	if len(hits) > q.K {
		t.Errorf("%d hits for K = %d", len(hits), q.K)
	}
	seen := map[string]bool{}
	for i, h := range hits {
		if seen[h.ID] {
			t.Errorf("%q is in the result twice", h.ID)
		}
		seen[h.ID] = true
		if h.Version != store.Version(h.Text) {
			t.Errorf("%q has version %q, want %q", h.ID, h.Version, store.Version(h.Text))
		}
		if i > 0 && (h.Score > hits[i-1].Score || h.Score == hits[i-1].Score && h.ID < hits[i-1].ID) {
			t.Errorf("%q (%v) stands behind %q (%v)", h.ID, h.Score, hits[i-1].ID, hits[i-1].Score)
		}
	}
	return hits
}

// ask is find for a text and K alone.
func ask(t testing.TB, x store.Searcher, text string, k int) []store.Hit {
	t.Helper()
	return find(t, x, store.Query{Text: text, K: k})
}

// doc is a document without metadata.
func doc(id, text string) store.Document { return store.Document{ID: id, Text: text} }

func ids(hits []store.Hit) []string {
	out := make([]string, len(hits))
	for i, h := range hits {
		out[i] = h.ID
	}
	return out
}

// hit returns the hit with this ID, or fails.
func hit(t testing.TB, hits []store.Hit, id string) store.Hit {
	t.Helper()
	for _, h := range hits {
		if h.ID == id {
			return h
		}
	}
	t.Fatalf("%q is not among %q", id, ids(hits))
	return store.Hit{}
}
