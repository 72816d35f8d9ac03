package retrievertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// otter is a query that any store could answer.
func otter() store.Query { return store.Query{Text: "otter", K: 3} }

// fails searches in what the factory makes: the error wraps want, and there is no result beside it. An empty result
// without error would make a model answer from nothing.
func fails(t *testing.T, name string, factory func(testing.TB) store.Searcher, want error) {
	t.Helper()
	if factory == nil {
		t.Skipf("the subject has no %s", name)
	}
	hits, err := factory(t).Search(within(t), otter())
	if !errors.Is(err, want) || hits != nil {
		t.Errorf("hits %v, error %v, want %v alone", hits, err, want)
	}
}

func checkMissing(t *testing.T, s Subject) { fails(t, "Missing", s.Missing, store.ErrNoIndex) }

func checkUnauthorized(t *testing.T, s Subject) {
	fails(t, "Unauthorized", s.Unauthorized, store.ErrUnauthorized)
}

func checkUnavailable(t *testing.T, s Subject) {
	fails(t, "Unavailable", s.Unavailable, store.ErrUnavailable)
}

// checkDeadline: a search does not outlive its deadline, whatever the server does.
func checkDeadline(t *testing.T, s Subject) {
	if s.Hanging == nil {
		t.Skip("the subject has no Hanging")
	}
	s.noLeaks(t)
	x := s.Hanging(t)
	start := time.Now()
	ctx, cancel := context.WithTimeout(within(t), 200*time.Millisecond)
	defer cancel()
	hits, err := x.Search(ctx, otter())
	if !errors.Is(err, context.DeadlineExceeded) || hits != nil {
		t.Errorf("hits %v, error %v, want DeadlineExceeded alone", hits, err)
	}
	if took := time.Since(start); took > patience/4 {
		t.Errorf("the search took %v with a deadline of 200 ms", took)
	}
}

// checkHangingCancel: cancellation ends a search that waits for its server.
func checkHangingCancel(t *testing.T, s Subject) {
	if s.Hanging == nil {
		t.Skip("the subject has no Hanging")
	}
	s.noLeaks(t)
	x := s.Hanging(t)
	ctx, cancel := context.WithCancel(within(t))
	timer := time.AfterFunc(50*time.Millisecond, cancel)
	defer timer.Stop()
	hits, err := x.Search(ctx, otter())
	if !errors.Is(err, context.Canceled) || hits != nil {
		t.Errorf("hits %v, error %v, want Canceled alone", hits, err)
	}
}
