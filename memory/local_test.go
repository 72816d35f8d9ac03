package memory_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/memory"
)

// hanging is a fake backend whose Reset does not end before its context.
type hanging struct {
	memory.Backend
	inside chan struct{}
}

func (h hanging) Reset(ctx context.Context) error {
	close(h.inside)
	<-ctx.Done()
	return ctx.Err()
}

// A reset that hangs makes nobody else wait.
func TestResetThatHangs(t *testing.T) {
	backend := hanging{memory.NewInMemory(), make(chan struct{})}
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
