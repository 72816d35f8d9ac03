package memorytest

import (
	"context"
	"slices"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/memory"
)

func checkReembed(b *backendBench) {
	open := func(e embed.Embedder) *memory.Local {
		b.Helper()
		store, err := memory.New(b.backend, memory.Config{Embedder: e})
		b.must(err)
		return store
	}
	b.must(errorOf(open(embed.NewHashed(64)).Add(b.ctx, user("ana"), said("apple", "bread"), memory.AddOptions{})))
	other := open(embed.NewHashed(128))
	b.fails("Add with another embedder", errorOf(other.Add(b.ctx, user("ana"), said("cake"), memory.AddOptions{})), memory.ErrEmbedder)
	b.fails("Search with another embedder", errorOf(other.Search(b.ctx, user("ana"), "apple", 1, memory.SearchOptions{})), embed.ErrDimension)
	b.must(open(embed.NewHashed(128)).Reembed(b.ctx))
	hits, err := other.Search(b.ctx, user("ana"), "apple", 1, memory.SearchOptions{}) // which has seen the vectors of before
	if err != nil || len(hits) != 1 || hits[0].Memory.Text != "apple" || hits[0].Semantic < 0.99 {
		b.Errorf("after Reembed: %+v, %v", hits, err)
	}
	b.fails("the embedder of before", errorOf(open(embed.NewHashed(64)).Search(b.ctx, user("ana"), "apple", 1, memory.SearchOptions{})),
		memory.ErrEmbedder)
}

// late is a fake embedder that is not ready at first.
type late struct {
	embed.Embedder
	ready bool
}

func (l *late) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	if !l.ready {
		return nil, embed.ErrNotReady
	}
	return l.Embedder.EmbedDocuments(ctx, texts)
}

func (l *late) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	if !l.ready {
		return nil, embed.ErrNotReady
	}
	return l.Embedder.EmbedQuery(ctx, text)
}

func checkFill(b *backendBench) {
	e := &late{Embedder: embed.NewHashed(64)}
	store, err := memory.New(b.backend, memory.Config{Embedder: e})
	b.must(err)
	search := func(when string) memory.Hit {
		b.Helper()
		hits, err := store.Search(b.ctx, user("ana"), "apple", 1, memory.SearchOptions{})
		if err != nil || len(hits) != 1 || hits[0].Memory.Text != "apple" {
			b.Fatalf("%s: %+v, %v", when, hits, err)
		}
		return hits[0]
	}
	add := func(texts ...string) {
		b.Helper()
		b.must(errorOf(store.Add(b.ctx, user("ana"), said(texts...), memory.AddOptions{})))
	}
	add("apple", "bread")
	if hit := search("not ready"); hit.Semantic != 0 || hit.Lexical == 0 {
		b.Errorf("not ready: %+v", hit)
	}
	if n, err := store.Fill(b.ctx); n != 0 || err != nil {
		b.Errorf("Fill without an embedder = %d, %v", n, err)
	}
	e.ready = true
	add("cake")
	search("some have vectors")
	if n, err := store.Fill(b.ctx); n != 2 || err != nil {
		b.Errorf("Fill = %d, %v; want 2", n, err)
	}
	if hit := search("filled"); hit.Semantic < 0.99 {
		b.Errorf("filled: %+v", hit)
	}
	if n, err := store.Fill(b.ctx); n != 0 || err != nil {
		b.Errorf("Fill again = %d, %v", n, err)
	}
}

// windowed is a fake extractor that notes what it is shown of earlier messages.
type windowed struct{ seen *[]string }

func (w windowed) Window() int { return 3 }

func (w windowed) Extract(ctx context.Context, in memory.Extraction) ([]memory.Action, error) {
	*w.seen = nil
	for _, m := range in.Recent {
		*w.seen = append(*w.seen, m.Content)
	}
	return memory.Everything{}.Extract(ctx, in)
}

func checkWindow(b *backendBench) {
	var seen []string
	store, err := memory.New(b.backend, memory.Config{Embedder: memory.Lexical, Extractor: windowed{&seen}})
	b.must(err)
	add := func(scope memory.Scope, want []string, texts ...string) (id string) {
		b.Helper()
		changes, err := store.Add(b.ctx, scope, said(texts...), memory.AddOptions{})
		if err != nil || len(changes) == 0 {
			b.Fatalf("Add = %v, %v", changes, err)
		}
		if !slices.Equal(seen, want) {
			b.Errorf("shown %q, want %q", seen, want)
		}
		return changes[0].ID
	}
	add(user("ana"), nil, "one", "two")
	add(user("ana"), []string{"one", "two"}, "three", "four")
	add(user("bo"), nil, "elsewhere")
	id := add(user("ana"), []string{"two", "three", "four"}, "five")
	b.must(store.Delete(b.ctx, id, memory.DeleteOptions{}))
	add(user("ana"), nil, "six") // what was said beside a deleted memory may be what it said
	b.must(errorOf(store.DeleteAll(b.ctx, user("ana"), memory.DeleteOptions{})))
	add(user("ana"), nil, "seven")
	add(user("bo"), []string{"elsewhere"}, "eight")
}
