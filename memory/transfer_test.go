package memory_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/memory"
)

// An import into a store of another embedder is refused and stores nothing, neither of its memories nor of their histories.
func TestImportForAnotherEmbedder(t *testing.T) {
	open := func(backend memory.Backend, dim int) *memory.Local {
		t.Helper()
		s, err := memory.New(backend, memory.Config{Embedder: embed.NewHashed(dim)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	add := func(s *memory.Local, text string) {
		t.Helper()
		if _, err := s.Add(t.Context(), ana, []memory.Message{{Role: memory.User, Content: text}}, memory.AddOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var lines bytes.Buffer
	from := open(memory.NewInMemory(), 64)
	add(from, "Ana drives a Volvo.")
	if err := from.Export(t.Context(), ana, &lines); err != nil {
		t.Fatal(err)
	}
	backend := memory.NewInMemory()
	into := open(backend, 64)
	add(into, "Ana keeps bees.")
	done, err := open(backend, 128).Import(t.Context(), bytes.NewReader(lines.Bytes()))
	if !errors.Is(err, memory.ErrEmbedder) || done != (memory.Imported{}) {
		t.Errorf("Import = %+v, %v, want nothing and ErrEmbedder", done, err)
	}
	var kept bytes.Buffer
	if err := into.Export(t.Context(), ana, &kept); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(kept.String(), "Volvo") || !strings.Contains(kept.String(), "bees") {
		t.Errorf("the store has\n%s", kept.String())
	}
}

// lame is a fake of an embedder that makes no vectors.
type lame struct{ embed.Embedder }

func (lame) EmbedDocuments(context.Context, []string) ([][]float32, error) { return nil, errLame }

var errLame = errors.New("no vectors today")

// An import whose vectors cannot be made is an error and stores nothing.
func TestImportWithoutVectors(t *testing.T) {
	var lines bytes.Buffer
	from := newStore(t, memory.Config{})
	mustAdd(t, from, "Ana drives a Volvo.")
	if err := from.Export(t.Context(), ana, &lines); err != nil {
		t.Fatal(err)
	}
	into := newStore(t, memory.Config{Embedder: lame{embed.NewHashed(64)}})
	if done, err := into.Import(t.Context(), &lines); !errors.Is(err, errLame) || done != (memory.Imported{}) {
		t.Errorf("Import = %+v, %v, want nothing and the embedder's error", done, err)
	}
	if got := textsOf(t, into, ana); len(got) > 0 {
		t.Errorf("stored: %q", got)
	}
}

// twice is a fake of a backend that another process was faster on: each change is made again.
type twice struct{ memory.Backend }

var errFaster = errors.New("another process was faster")

func (b twice) Change(ctx context.Context, f func(memory.Tx) error) error {
	err := b.Backend.Change(ctx, func(tx memory.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		return errFaster
	})
	if !errors.Is(err, errFaster) {
		return err
	}
	return b.Backend.Change(ctx, f)
}

// A change that is made again counts what it stored once.
func TestImportThatIsMadeAgain(t *testing.T) {
	var lines bytes.Buffer
	from := newStore(t, memory.Config{})
	mustAdd(t, from, "Ana drives a Volvo.", "Ana keeps bees.")
	if err := from.Export(t.Context(), ana, &lines); err != nil {
		t.Fatal(err)
	}
	into, err := memory.New(twice{memory.NewInMemory()}, memory.Config{Embedder: memory.Lexical})
	if err != nil {
		t.Fatal(err)
	}
	done, err := into.Import(t.Context(), &lines)
	if want := (memory.Imported{Memories: 2, Revisions: 2}); err != nil || done != want {
		t.Errorf("Import = %+v, %v, want %+v", done, err, want)
	}
}
