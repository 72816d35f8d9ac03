package memory_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/inmem"
)

// hanging is a fake backend whose Reset does not end before its context.
type hanging struct {
	*inmem.Backend
	inside chan struct{}
}

func (h hanging) Reset(ctx context.Context) error {
	close(h.inside)
	<-ctx.Done()
	return ctx.Err()
}

// A reset that hangs makes nobody else wait.
func TestResetThatHangs(t *testing.T) {
	backend := hanging{inmem.New(), make(chan struct{})}
	store, err := memory.New(backend, memory.Config{Embedder: memory.Lexical})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	resetting, end := context.WithCancel(ctx)
	reset, search := make(chan error, 1), make(chan error, 1)
	go func() { reset <- store.Reset(resetting) }()
	<-backend.inside
	go func() {
		_, err := store.Search(ctx, memory.Scope{User: "ana"}, "tea", 1, memory.SearchOptions{})
		search <- err
	}()
	select {
	case err := <-search:
		if err != nil {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Error("a search waits for a reset")
	}
	end()
	if err := <-reset; !errors.Is(err, context.Canceled) {
		t.Errorf("Reset: %v", err)
	}
}

// GetMany returns what there is, in the order of GetAll.
func TestGetMany(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	store := newStore(t, memory.Config{Now: func() time.Time { now = now.Add(time.Second); return now }})
	added := mustAdd(t, store, "Ana keeps bees.", "Ana has a boat.", "Ana drinks tea.")
	past := now
	if _, err := store.Update(t.Context(), added[1].ID, memory.Update{ExpiresAt: &past}); err != nil {
		t.Fatal(err)
	}
	ids := []string{added[2].ID, "unknown", added[1].ID, added[0].ID, added[2].ID}
	for name, test := range map[string]struct {
		opts memory.ListOptions
		want []string
	}{
		"usual":   {memory.ListOptions{}, []string{"Ana keeps bees.", "Ana drinks tea."}},
		"expired": {memory.ListOptions{Expired: true}, []string{"Ana keeps bees.", "Ana has a boat.", "Ana drinks tea."}},
		"filter":  {memory.ListOptions{Filter: memory.Where("text", memory.OpIcontains, "TEA")}, []string{"Ana drinks tea."}},
		"limit":   {memory.ListOptions{Limit: 1}, []string{"Ana keeps bees."}},
	} {
		found, err := store.GetMany(t.Context(), ids, test.opts)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range found {
			got = append(got, m.Text)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if ids[0] != added[2].ID {
		t.Error("the caller's IDs were changed")
	}
	if _, err := store.GetMany(t.Context(), ids, memory.ListOptions{Filter: memory.Where("text", "no operator", 1)}); !errors.Is(err, memory.ErrBadFilter) {
		t.Errorf("a filter that is not one: %v", err)
	}
}
