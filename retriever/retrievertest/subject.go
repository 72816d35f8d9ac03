package retrievertest

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// Store is what the suite fills, searches and closes. A store without some of these methods is tested behind an
// adapter of its tests.
type Store interface {
	store.Searcher
	// Upsert stores the documents; a document of the same tenant and ID is replaced, and of several with one ID the
	// last counts. After it has returned, searches find them.
	Upsert(ctx context.Context, docs []store.Document) error
	// Delete removes documents. Those that do not exist are not an error. Tenant is empty in a store without tenants.
	Delete(ctx context.Context, tenant string, ids ...string) error
	// Close frees the store, also if called twice. What is stored on a server stays there.
	Close() error
}

// Subject is what is tested. New is needed; the checks of a nil field are skipped by name.
type Subject struct {
	// New returns an empty store without tenants, of its own for each call. It removes with t.Cleanup what it made;
	// the suite may have closed the store by then.
	New func(t testing.TB) Store
	// Tenants returns an empty store with tenants.
	Tenants func(t testing.TB) Store
	// Missing returns a store whose index does not exist on the server.
	Missing func(t testing.TB) store.Searcher
	// Unauthorized returns a store that is opened with wrong credentials.
	Unauthorized func(t testing.TB) store.Searcher
	// Unavailable returns a store whose server does not run, or has just been stopped.
	Unavailable func(t testing.TB) store.Searcher
	// Hanging returns a store whose server takes a request and never answers.
	Hanging func(t testing.TB) store.Searcher

	// FusesRanks says that scores come from ranks, so that equal documents do not score equally. Which of them comes
	// first is then the server's choice, and the suite asks only that it stays the same.
	FusesRanks bool
	// Leaks are options for goleak, for goroutines that live as long as the process.
	Leaks []goleak.Option
}
