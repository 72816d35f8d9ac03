package memory_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/sqlite"
)

// inFile opens a store in a file.
func inFile(t *testing.T, path string, cfg memory.Config) *memory.Local {
	t.Helper()
	backend, err := sqlite.Open(t.Context(), path, sqlite.Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	store, err := memory.New(backend, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// inScope stores statements in a scope.
func inScope(t testing.TB, store memory.Store, scope memory.Scope, texts ...string) []memory.Change {
	t.Helper()
	return testkit.Must(store.Add(t.Context(), scope, said(texts...), memory.AddOptions{Extractor: memory.Everything{}}))(t)
}

// first is the text that a search finds first, empty if there is none.
func first(t testing.TB, store memory.Store, scope memory.Scope, query string) string {
	t.Helper()
	hits, err := store.Search(t.Context(), scope, query, 1, memory.SearchOptions{})
	if err != nil {
		t.Errorf("Search(%q): %v", query, err)
	}
	if len(hits) == 0 {
		return ""
	}
	return hits[0].Memory.Text
}

// Searches in ever more scopes, with memories or without, never take more than the bound, and what had to go is found again.
func TestIndexesManyScopes(t *testing.T) {
	const bound = 256 << 10
	for name, run := range map[string]func(i int) string{
		"short names": func(i int) string { return fmt.Sprint(i) },
		"long names":  func(i int) string { return fmt.Sprint(strings.Repeat("r", 500), i) },
	} {
		t.Run(name, func(t *testing.T) {
			indexes := memory.NewIndexes(bound)
			store := newStore(t, memory.Config{Indexes: indexes})
			scope := func(i int) memory.Scope { return memory.Scope{User: "ana", Run: run(i)} }
			const filled = 100
			for i := range filled {
				inScope(t, store, scope(i), fmt.Sprintf("The code of run %d is word%d.", i, i))
			}
			for i := range 2000 {
				want := ""
				if i < filled {
					want = fmt.Sprintf("The code of run %d is word%d.", i, i)
				}
				if got := first(t, store, scope(i), "code"); got != want {
					t.Fatalf("scope %d: %q, want %q", i, got, want)
				}
				if n := indexes.Bytes(); n > bound || n <= 0 {
					t.Fatalf("%d bytes after %d scopes, want at most %d", n, i+1, bound)
				}
			}
			if n := indexes.Bytes(); n < bound/2 {
				t.Errorf("%d bytes of %d after 2000 scopes: too few are kept, or not all is counted", n, bound)
			}
			if got := first(t, store, scope(7), "code"); got != "The code of run 7 is word7." {
				t.Errorf("searched again: %q", got)
			}
		})
	}
}

// Two stores that share indexes keep to one bound, and one that is closed takes nothing.
func TestIndexesShared(t *testing.T) {
	const bound = 512 << 10
	indexes := memory.NewIndexes(bound)
	a, b := newStore(t, memory.Config{Indexes: indexes}), newStore(t, memory.Config{Indexes: indexes})
	var texts []string
	for i := range 1000 {
		texts = append(texts, fmt.Sprintf("Shelf %d has box%d.", i, i))
	}
	inScope(t, a, ana, texts...)
	inScope(t, b, ana, texts...)
	inScope(t, b, memory.Scope{User: "bo"}, "Bo has a box.")
	if first(t, a, ana, "box17") != texts[17] {
		t.Error("not found by the first store")
	}
	alone := indexes.Bytes()
	if alone < bound/2 || alone > bound {
		t.Fatalf("%d bytes: the test needs one index to fit and two not to", alone)
	}
	for range 3 {
		for _, store := range []*memory.Local{a, b} {
			if first(t, store, ana, "box17") != texts[17] {
				t.Error("not found")
			}
			if n := indexes.Bytes(); n > bound {
				t.Errorf("%d bytes, want at most %d", n, bound)
			}
		}
	}
	if first(t, b, memory.Scope{User: "bo"}, "box") != "Bo has a box." {
		t.Error("not found")
	}
	before := indexes.Bytes()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if n := indexes.Bytes(); n >= before {
		t.Errorf("%d bytes after a store was closed, %d before", n, before)
	}
	left := indexes.Bytes()
	_, _ = b.Search(t.Context(), ana, "box17", 1, memory.SearchOptions{}) // whatever it returns
	if n := indexes.Bytes(); n != left {
		t.Errorf("%d bytes after a search of a closed store, %d before", n, left)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if n := indexes.Bytes(); n != 0 {
		t.Errorf("%d bytes after all stores were closed", n)
	}
}

// A scope that is larger than the bound is searched, and is then the only one.
func TestIndexesTooSmall(t *testing.T) {
	indexes := memory.NewIndexes(1)
	store := newStore(t, memory.Config{Indexes: indexes})
	bo := memory.Scope{User: "bo"}
	inScope(t, store, ana, "Ana has a cat.")
	inScope(t, store, bo, "Bo has a dog.", "Bo has a bird.", "Bo has a fish.")
	if got := first(t, store, bo, "dog"); got != "Bo has a dog." {
		t.Errorf("%q", got)
	}
	three := indexes.Bytes()
	if got := first(t, store, ana, "cat"); got != "Ana has a cat." {
		t.Errorf("%q", got)
	}
	if n := indexes.Bytes(); n >= three || n <= 0 {
		t.Errorf("%d bytes with one memory, %d with three", n, three)
	}
}

// What is counted is what is held: the heap grows by about as many bytes, whatever memories are made of.
func TestIndexesWeigh(t *testing.T) {
	testkit.NotUnderRace(t)
	if testing.Short() {
		t.Skip("takes 20 s")
	}
	sentence := func(i int) string {
		return fmt.Sprintf("Person %d likes dish %d and lives in town %d since the spring.", i, i%311, i%531)
	}
	for _, c := range []struct {
		name   string
		number int
		scopes int
		text   func(i int) string
		embeds embed.Embedder
	}{
		{"with vectors", 5000, 1, sentence, embed.NewHashed(384)},
		{"words alone", 5000, 1, sentence, memory.Lexical},
		{"long texts", 1000, 1, func(i int) string { return strings.ToLower(strings.Repeat(sentence(i)+" ", 50)) }, memory.Lexical},
		{"new words", 3000, 1, func(i int) string { return fmt.Sprintf("a%d b%d c%d d%d e%d f%d", i, i, i, i, i, i) }, memory.Lexical},
		{"many scopes", 2000, 2000, sentence, memory.Lexical},
	} {
		t.Run(c.name, func(t *testing.T) {
			indexes := memory.NewIndexes(1 << 30)
			store := inFile(t, filepath.Join(t.TempDir(), "memories.db"), memory.Config{Indexes: indexes, Embedder: c.embeds})
			scope := func(i int) memory.Scope { return memory.Scope{User: "ana", Run: fmt.Sprint("run ", i%c.scopes)} }
			byScope := make([][]string, c.scopes)
			for i := range c.number {
				byScope[i%c.scopes] = append(byScope[i%c.scopes], c.text(i))
			}
			for i, texts := range byScope {
				inScope(t, store, scope(i), texts...)
			}
			before := heap()
			for i := range c.scopes {
				_ = first(t, store, scope(i), "town")
			}
			grew, counted := heap()-before, indexes.Bytes()
			runtime.KeepAlive(byScope)
			runtime.KeepAlive(store)
			t.Logf("%d bytes a memory are held, %d counted", grew/int64(c.number), counted/int64(c.number))
			if counted < grew*7/10 || counted > grew*13/10 {
				t.Errorf("%d bytes are counted, and the heap grew by %d", counted, grew)
			}
		})
	}
}

// heap is what is in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // far below 2^63
}

// A search that begins when an Add has returned finds what was added, while others add and search, and while indexes have to go.
func TestIndexesConcurrent(t *testing.T) {
	for name, bound := range map[string]int64{"room": 0, "no room": 1} {
		t.Run(name, func(t *testing.T) {
			backend := memory.NewInMemory()
			store, err := memory.New(backend, memory.Config{Embedder: memory.Lexical, Indexes: memory.NewIndexes(bound)})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			var all sync.WaitGroup
			for g := range 8 {
				all.Go(func() {
					scope := memory.Scope{User: fmt.Sprint("user", g%2)}
					for i := range 25 {
						text := fmt.Sprintf("Locker q%dx%d is taken.", g, i)
						changes, err := store.Add(t.Context(), scope, said(text), memory.AddOptions{})
						if err != nil {
							t.Error(err)
							return
						}
						query := fmt.Sprintf("q%dx%d", g, i)
						if got := first(t, store, scope, query); got != text {
							t.Errorf("%q after %q was added", got, text)
						}
						if i%5 > 0 {
							continue
						}
						if err := store.Delete(t.Context(), changes[0].ID, memory.DeleteOptions{}); err != nil {
							t.Error(err)
						}
						if got := first(t, store, scope, query); got == text {
							t.Errorf("%q is found after it was deleted", got)
						}
					}
				})
			}
			all.Wait()
		})
	}
}

// What another process changes in the same file is seen by the next search.
func TestIndexesFollowOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memories.db")
	reader, writer := inFile(t, path, memory.Config{Embedder: memory.Lexical}), inFile(t, path, memory.Config{Embedder: memory.Lexical})
	bo := memory.Scope{User: "bo"}
	sees := func(step string, want ...string) {
		t.Helper()
		hits, err := reader.Search(t.Context(), ana, "tea", 10, memory.SearchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, h := range hits {
			got = append(got, h.Memory.Text)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", step, got, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := context.WithoutCancel(t.Context())
	sees("empty")
	changes := inScope(t, writer, ana, "Ana likes tea.", "Ana likes milk.")
	inScope(t, writer, bo, "Bo likes tea.")
	sees("added", "Ana likes milk.", "Ana likes tea.")
	text := "Ana hates tea."
	_, err := writer.Update(ctx, changes[0].ID, memory.Update{Text: &text})
	must(err)
	sees("updated", "Ana hates tea.", "Ana likes milk.")
	must(writer.Delete(ctx, changes[1].ID, memory.DeleteOptions{}))
	sees("deleted", "Ana hates tea.")
	_, err = writer.DeleteAll(ctx, ana, memory.DeleteOptions{})
	must(err)
	sees("all deleted")
	if got := first(t, reader, bo, "tea"); got != "Bo likes tea." {
		t.Errorf("of another scope: %q", got)
	}
	inScope(t, writer, ana, "Ana drinks tea again.")
	sees("added again", "Ana drinks tea again.")
	must(writer.Reset(ctx))
	sees("reset")
	if got := first(t, reader, bo, "tea"); got != "" {
		t.Errorf("after a reset of another scope: %q", got)
	}
	inScope(t, writer, ana, "Ana has tea.")
	sees("after the reset", "Ana has tea.")
}
