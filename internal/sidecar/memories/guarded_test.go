package memories

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ragpilot/ragpilot/memory"
)

// openGuarded opens a folder, and the store of one tenant in it.
func openGuarded(t *testing.T) (*Folder, memory.Store) {
	t.Helper()
	f, err := Open(t.TempDir(), Options{Embedder: memory.Lexical})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	s, release, err := f.Use(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return f, s
}

// A deletion that is stored is not made again in the room of the reserve, only its erasing is; other errors pass.
func TestRemoveUsesTheReserve(t *testing.T) {
	f, s := openGuarded(t)
	other := errors.New("another")
	for _, c := range []struct {
		name  string
		fails error
		calls int
		want  error
	}{
		{"room", nil, 1, nil},
		{"no room", memory.ErrFull, 2, nil},
		{"no room to erase", fmt.Errorf("%w: %w", memory.ErrNotErased, memory.ErrFull), 1, nil},
		{"another error", other, 1, other},
	} {
		calls := 0
		err := s.(*guarded).remove(t.Context(), func() error {
			if calls++; calls == 1 {
				return c.fails
			}
			if f.reserve.enough.Load() {
				t.Errorf("%s: the reserve was not spent", c.name)
			}
			return nil
		})
		if calls != c.calls || !errors.Is(err, c.want) {
			t.Errorf("%s: %d calls, %v; want %d, %v", c.name, calls, err, c.calls, c.want)
		}
		if !f.reserve.enough.Load() {
			t.Errorf("%s: the reserve was not filled again", c.name)
		}
	}
}

// A reserve that is too small keeps memories from being added or changed.
func TestNothingIsAddedWithoutTheReserve(t *testing.T) {
	f, s := openGuarded(t)
	add := func() ([]memory.Change, error) {
		return s.Add(
			context.Background(),
			memory.Scope{User: "ana"},
			[]memory.Message{{Role: memory.User, Content: "keeps bees"}},
			memory.AddOptions{},
		)
	}
	path := f.reserve.path
	f.reserve.enough.Store(false)
	f.reserve.path = t.TempDir() // cannot be written: it is a folder
	if _, err := add(); err == nil {
		t.Error("added")
	}
	if _, err := s.Update(t.Context(), "x", memory.Update{Text: new("y")}); err == nil || errors.Is(err, memory.ErrNotFound) {
		t.Errorf("update: %v", err)
	}
	f.reserve.path = path
	if changes, err := add(); err != nil || len(changes) != 1 {
		t.Errorf("with the reserve: %v, %v", changes, err)
	}
}
