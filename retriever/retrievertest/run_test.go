package retrievertest_test

import (
	"context"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/retriever/retrievertest"
	"github.com/ragpilot/ragpilot/retriever/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broken is a store that only fails.
type broken struct{ err error }

func (b broken) Search(context.Context, store.Query) ([]store.Hit, error) {
	return nil, fmt.Errorf("search: %w", b.err)
}

// hanging waits for the end of the context.
type hanging struct{}

func (hanging) Search(ctx context.Context, _ store.Query) ([]store.Hit, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func subject() retrievertest.Subject {
	fails := func(err error) func(testing.TB) store.Searcher {
		return func(testing.TB) store.Searcher { return broken{err} }
	}
	return retrievertest.Subject{
		New:          func(testing.TB) retrievertest.Store { return newMemory(false) },
		Tenants:      func(testing.TB) retrievertest.Store { return newMemory(true) },
		Missing:      fails(store.ErrNoIndex),
		Unauthorized: fails(store.ErrUnauthorized),
		Unavailable:  fails(store.ErrUnavailable),
		Hanging:      func(testing.TB) store.Searcher { return hanging{} },
	}
}

func TestSlowStoreThatIsRight(t *testing.T) { retrievertest.Run(t, subject()) }
