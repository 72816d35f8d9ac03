package memory_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/memory"
)

// With ByWords a store of another embedder is searched by words, and adds, updates and imports without vectors, until it is
// brought to the embedder, by whatever process.
func TestByWords(t *testing.T) {
	backend := memory.NewInMemory()
	open := func(cfg memory.Config) *memory.Local {
		t.Helper()
		s, err := memory.New(backend, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	ana := memory.Scope{User: "ana"}
	add := func(s *memory.Local, text string) memory.Change {
		t.Helper()
		changes, err := s.Add(t.Context(), ana, []memory.Message{{Role: memory.User, Content: text}}, memory.AddOptions{})
		if err != nil || len(changes) != 1 {
			t.Fatalf("%+v, %v", changes, err)
		}
		return changes[0]
	}
	add(open(memory.Config{Embedder: embed.NewHashed(64)}), "Ana keeps bees.")
	calls := 0
	s := open(memory.Config{Embedder: embed.NewHashed(128), ByWords: func(err error) {
		if !errors.Is(err, memory.ErrEmbedder) {
			t.Errorf("called with %v", err)
		}
		calls++
	}})
	changed := add(s, "Ana has a cat.")
	if _, err := s.Update(t.Context(), changed.ID, memory.Update{Text: new("Ana has a dog.")}); err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	from, err := memory.New(memory.NewInMemory(), memory.Config{Embedder: memory.Lexical})
	if err != nil {
		t.Fatal(err)
	}
	add(from, "Ana drives a Volvo.")
	if err := from.Export(t.Context(), ana, &lines); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Import(t.Context(), &lines); err != nil {
		t.Fatal(err)
	}
	if calls != 3 {
		t.Errorf("%d calls, want one each for Add, Update and Import", calls)
	}
	semantic := func(query, want string) float64 {
		t.Helper()
		hits, err := s.Search(t.Context(), ana, query, 1, memory.SearchOptions{})
		if err != nil || len(hits) != 1 || hits[0].Memory.Text != want || hits[0].Lexical == 0 {
			t.Fatalf("%s: %+v, %v", query, hits, err)
		}
		return hits[0].Semantic
	}
	questions := map[string]string{"bees": "Ana keeps bees.", "dog": "Ana has a dog.", "Volvo": "Ana drives a Volvo."}
	for query, want := range questions {
		if got := semantic(query, want); got != 0 {
			t.Errorf("%s is found by a vector: %v", query, got)
		}
	}
	if _, err := s.Fill(t.Context()); !errors.Is(err, memory.ErrEmbedder) {
		t.Errorf("Fill = %v", err)
	}
	if err := open(memory.Config{Embedder: embed.NewHashed(128)}).Reembed(t.Context()); err != nil {
		t.Fatal(err)
	}
	calls = 0
	for query, want := range questions {
		if got := semantic(query, want); got == 0 {
			t.Errorf("%s is not found by a vector", query)
		}
	}
	if calls != 0 {
		t.Errorf("%d calls after Reembed", calls)
	}
}
