package memories

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/memory"
)

// When the embedder has arrived, each store that is open is filled once, and each that is opened later; a failure is logged
// and keeps no other from being filled.
func TestFiller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		arrived := make(chan struct{})
		var mu sync.Mutex
		var filled []memory.Store // guarded by mu
		var log logged
		f, err := Open(
			t.TempDir(),
			Options{Embedder: memory.Lexical, Arrived: arrived, Log: slog.New(&log), fill: func(_ context.Context, g *guarded) (int, error) {
				mu.Lock()
				defer mu.Unlock()
				filled = append(filled, g)
				return 0, errors.New("no")
			}},
		)
		if err != nil {
			t.Fatal(err)
		}
		use := func(tenant string) memory.Store {
			s, release, err := f.Use(t.Context(), tenant)
			if err != nil {
				t.Fatal(err)
			}
			release()
			return s
		}
		a, b := use("a"), use("b")
		check := func(want ...memory.Store) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(filled) != len(want) || slices.ContainsFunc(want, func(s memory.Store) bool { return !slices.Contains(filled, s) }) {
				t.Errorf("filled %v, want %v", filled, want)
			}
		}
		check()
		close(arrived)
		check(a, b)
		c := use("c")
		use("a")
		check(a, b, c)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if log.n != 3 {
			t.Errorf("%d failures are logged, want 3", log.n)
		}
	})
}

// A folder that is closed before the embedder arrives waits for nothing.
func TestFillerClosed(t *testing.T) {
	f, err := Open(t.TempDir(), Options{Embedder: memory.Lexical, Arrived: make(chan struct{})})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// logged counts.
type logged struct{ n int }

func (l *logged) Enabled(context.Context, slog.Level) bool  { return true }
func (l *logged) Handle(context.Context, slog.Record) error { l.n++; return nil }
func (l *logged) WithAttrs([]slog.Attr) slog.Handler        { return l }
func (l *logged) WithGroup(string) slog.Handler             { return l }

// With ByWords, stores of another embedder are searched by words, and one line is logged for all.
func TestByWords(t *testing.T) {
	dir, scope, text := t.TempDir(), memory.Scope{User: "ana"}, "Ana keeps bees."
	var log logged
	arrived := make(chan struct{})
	close(arrived)
	for _, o := range []Options{
		{Embedder: embed.NewHashed(64)},
		{Embedder: embed.NewHashed(128), ByWords: true, Arrived: arrived, Log: slog.New(&log)},
	} {
		f, err := Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, tenant := range []string{"a", "b"} {
			s, release, err := f.Use(t.Context(), tenant)
			if err != nil {
				t.Fatal(err)
			}
			if !o.ByWords {
				_, err = s.Add(t.Context(), scope, []memory.Message{{Role: memory.User, Content: text}}, memory.AddOptions{})
			}
			hits, searched := s.Search(t.Context(), scope, "bees", 1, memory.SearchOptions{})
			if err := errors.Join(err, searched); err != nil || len(hits) != 1 || hits[0].Memory.Text != text || hits[0].Semantic == 0 != o.ByWords {
				t.Errorf("%s by words %v: %+v, %v", tenant, o.ByWords, hits, err)
			}
			release()
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if log.n != 1 {
		t.Errorf("%d lines are logged, want 1", log.n)
	}
}
