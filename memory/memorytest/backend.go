package memorytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/memory"
)

// backendBench is what a check of a backend works with.
type backendBench struct {
	*testing.T
	ctx     context.Context
	backend memory.Backend
}

// RunBackend checks the backends made by open, each empty and used by one check, and then, with [Run], the stores over
// them. The suite closes the backends.
func RunBackend(t *testing.T, open func(t *testing.T) memory.Backend) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*backendBench)
	}{
		{"RollBack", checkRollBack},
		{"TxSeesItself", checkTxSeesItself},
		{"OneAfterTheOther", checkOneAfterTheOther},
		{"Parts", checkParts},
		{"Lexicon", checkLexicon},
		{"FirstSpaceStays", checkSpace},
		{"Reembed", checkReembed},
		{"Window", checkWindow},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			backend := open(t)
			t.Cleanup(func() {
				if err := backend.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
			c.run(&backendBench{t, ctx, backend})
		})
	}
	t.Run("Store", func(t *testing.T) {
		Run(t, func(t *testing.T, cfg memory.Config) memory.Store {
			store, err := memory.New(open(t), cfg)
			if err != nil {
				t.Fatal(err)
			}
			return store
		})
	})
}

// record returns a record that can be told from others.
func record(scope memory.Scope, text string, terms ...string) *memory.Record {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC)
	return &memory.Record{
		Memory: memory.Memory{
			ID: "id-" + text, Text: text, Hash: memory.HashOf(text), Scope: scope, Role: "user", Actor: "ana",
			Metadata: map[string]any{"n": 1.0}, CreatedAt: at, UpdatedAt: at.Add(time.Hour), ExpiresAt: at.AddDate(1, 0, 0),
		},
		Vector: []float32{1, float32(len(text)), -0.25},
		Terms:  terms, Entities: []string{text, "ana maria"},
	}
}

func (b *backendBench) change(f func(tx memory.Tx) error) {
	b.Helper()
	if err := b.backend.Change(b.ctx, f); err != nil {
		b.Fatalf("Change: %v", err)
	}
}

// picture describes all that the backend holds for the scopes and logs of these checks.
func (b *backendBench) picture() string {
	b.Helper()
	var lines []string
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	must(b.backend.Scan(b.ctx, memory.Scope{}, memory.Whole, func(r *memory.Record) bool {
		lines = append(lines, fmt.Sprintf("%+v %v %q", r.Memory, r.Vector, r.Entities))
		return true
	}))
	must(b.backend.ScopeHistory(b.ctx, memory.Scope{}, func(r *memory.Revision) bool {
		lines = append(lines, fmt.Sprintf("%+v", *r))
		return true
	}))
	messages, err := b.backend.Messages(b.ctx, memory.Log{Scope: user("ana"), Kind: "k"}, 0)
	must(err)
	lex, err := b.backend.Lexicon(b.ctx, memory.Scope{}, []string{"apple", "bread"})
	must(err)
	slices.SortFunc(lex.Postings, func(x, y memory.Posting) int { return slices.Compare(x.Terms, y.Terms) })
	slices.Sort(lines)
	return fmt.Sprintf("%q\n%+v\n%+v", lines, messages, lex)
}

// steps changes everything that can be changed.
func steps(ctx context.Context, tx memory.Tx) error {
	log := memory.Log{Scope: user("ana"), Kind: "k"}
	_, removed := tx.Remove(ctx, "id-apple")
	_, appended := tx.Append(ctx, &memory.Revision{ID: "r2", MemoryID: "id-bread", Event: memory.Added, Scope: user("ana"), New: "bread"})
	_, erased := tx.EraseScope(ctx, user("ana"))
	return errors.Join(
		removed, appended, erased,
		tx.Put(ctx, record(user("ana"), "bread", "bread")),
		tx.SetVector(ctx, "id-cake", []float32{0, 0, 9}),
		tx.SetMessages(ctx, log, said("x", "y")),
		tx.AppendMessages(ctx, log, said("z"), 2),
		tx.DropMessages(ctx, "k", user("ana")),
	)
}

func (b *backendBench) fill() {
	b.Helper()
	b.change(func(tx memory.Tx) error {
		_, appended := tx.Append(b.ctx, &memory.Revision{ID: "r1", MemoryID: "id-apple", Event: memory.Added, Scope: user("ana"), New: "apple"})
		return errors.Join(
			appended,
			tx.Put(b.ctx, record(user("ana"), "apple", "apple", "apple", "red")),
			tx.Put(b.ctx, record(memory.Scope{User: "bo", Run: "7"}, "cake", "cake")),
			tx.SetMessages(b.ctx, memory.Log{Scope: user("ana"), Kind: "k"}, said("one", "two", "three")),
		)
	})
}

func checkRollBack(b *backendBench) {
	b.fill()
	before := b.picture()
	broken := errors.New("broken")
	err := b.backend.Change(b.ctx, func(tx memory.Tx) error {
		if err := steps(b.ctx, tx); err != nil {
			b.Error(err)
		}
		return broken
	})
	if !errors.Is(err, broken) {
		b.Errorf("Change = %v, want the function's error", err)
	}
	if diff := cmp.Diff(before, b.picture()); diff != "" {
		b.Errorf("a failed transaction changed something: %s", diff)
	}
	func() {
		defer func() { _ = recover() }() // the panic of the line below
		_ = b.backend.Change(b.ctx, func(tx memory.Tx) error {
			if err := steps(b.ctx, tx); err != nil {
				b.Error(err)
			}
			panic("boom")
		})
	}()
	if diff := cmp.Diff(before, b.picture()); diff != "" {
		b.Errorf("a transaction that panicked changed something: %s", diff)
	}
	b.change(func(tx memory.Tx) error { return steps(b.ctx, tx) })
	if b.picture() == before {
		b.Error("a transaction that succeeded changed nothing")
	}
}

func checkTxSeesItself(b *backendBench) {
	b.fill()
	b.change(func(tx memory.Tx) error {
		r := record(user("ana"), "bread", "bread")
		if err := tx.Put(b.ctx, r); err != nil {
			return err
		}
		got, ok, err := tx.Find(b.ctx, user("ana"), memory.HashOf("bread"))
		if diff := cmp.Diff(r.Memory, got); err != nil || !ok || diff != "" {
			b.Errorf("Find = %v, %v: %s", ok, err, diff)
		}
		if _, ok, err := tx.Find(b.ctx, memory.Scope{User: "ana", Run: "7"}, memory.HashOf("bread")); ok || err != nil {
			b.Errorf("Find in another scope = %v, %v", ok, err)
		}
		ids, err := tx.IDs(b.ctx, user("ana"))
		slices.Sort(ids)
		if err != nil || !slices.Equal(ids, []string{"id-apple", "id-bread"}) {
			b.Errorf("IDs = %q, %v", ids, err)
		}
		if ok, err := tx.Remove(b.ctx, "id-bread"); err != nil || !ok {
			b.Errorf("Remove = %v, %v", ok, err)
		}
		if ok, err := tx.Remove(b.ctx, "id-bread"); err != nil || ok {
			b.Errorf("Remove again = %v, %v", ok, err)
		}
		if _, ok, err := tx.Get(b.ctx, "id-bread"); err != nil || ok {
			b.Errorf("Get of what was removed = %v, %v", ok, err)
		}
		fresh, err := tx.Append(b.ctx, &memory.Revision{ID: "r1", MemoryID: "other", Event: memory.Deleted, Scope: user("bo")})
		if err != nil || fresh {
			b.Errorf("a row written twice = %v, %v", fresh, err)
		}
		return nil
	})
}

// checkOneAfterTheOther: what a transaction reads does not change before it writes.
func checkOneAfterTheOther(b *backendBench) {
	b.fill()
	const writers = 12
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			err := b.backend.Change(b.ctx, func(tx memory.Tx) error {
				m, _, err := tx.Get(b.ctx, "id-apple")
				if err != nil {
					return err
				}
				n, ok := m.Metadata["n"].(float64)
				if !ok {
					return fmt.Errorf("metadata %v", m.Metadata)
				}
				r := record(user("ana"), "apple", "apple")
				r.Memory.Metadata = map[string]any{"n": n + 1}
				return tx.Put(b.ctx, r)
			})
			if err != nil {
				b.Errorf("Change: %v", err)
			}
		})
	}
	group.Wait()
	found, err := b.backend.Get(b.ctx, []string{"id-apple"})
	if err != nil || len(found) != 1 || found[0].Metadata["n"] != 1.0+writers {
		b.Errorf("%+v, %v; want n = %d", found, err, 1+writers)
	}
}

func checkParts(b *backendBench) {
	b.fill()
	want := record(user("ana"), "apple")
	for part, want := range map[memory.Part]memory.Record{
		memory.Vectors: {
			Memory: memory.Memory{ID: want.Memory.ID, CreatedAt: want.Memory.CreatedAt, ExpiresAt: want.Memory.ExpiresAt},
			Vector: want.Vector, Entities: want.Entities,
		},
		memory.Memories: {Memory: want.Memory},
		memory.Whole:    {Memory: want.Memory, Vector: want.Vector, Entities: want.Entities},
	} {
		seen := 0
		err := b.backend.Scan(b.ctx, user("ana"), part, func(r *memory.Record) bool {
			seen++
			got := memory.Record{Memory: r.Memory, Vector: slices.Clone(r.Vector), Entities: slices.Clone(r.Entities)}
			if part == memory.Memories {
				got.Vector, got.Entities = nil, nil // may be there
			}
			if diff := cmp.Diff(want, got); diff != "" {
				b.Errorf("part %d: %s", part, diff)
			}
			return true
		})
		if err != nil || seen != 1 {
			b.Errorf("part %d: %d records, %v", part, seen, err)
		}
	}
	calls := 0
	err := b.backend.Scan(b.ctx, memory.Scope{}, memory.Whole, func(*memory.Record) bool { calls++; return false })
	if err != nil || calls != 1 {
		b.Errorf("a walk that was ended: %d calls, %v", calls, err)
	}
	some, err := b.backend.Get(b.ctx, []string{"no", "id-cake", "id-apple"})
	if err != nil || len(some) != 2 {
		b.Errorf("Get = %+v, %v", some, err)
	}
}

func checkLexicon(b *backendBench) {
	scope := user("ana")
	b.change(func(tx memory.Tx) error {
		return errors.Join(
			tx.Put(b.ctx, record(scope, "a", "apple", "red", "apple")),
			tx.Put(b.ctx, record(scope, "b", "red", "日本", "œuvre", "not")),
			tx.Put(b.ctx, record(scope, "c")),
			tx.Put(b.ctx, record(user("bo"), "d", "apple", "red")),
		)
	})
	ask := func(terms ...string) memory.Lexicon {
		b.Helper()
		lex, err := b.backend.Lexicon(b.ctx, scope, terms)
		if err != nil {
			b.Fatalf("Lexicon(%q): %v", terms, err)
		}
		slices.SortFunc(lex.Postings, func(x, y memory.Posting) int { return slices.Compare([]string{x.ID}, []string{y.ID}) })
		return lex
	}
	first := memory.Posting{ID: "id-a", Terms: []string{"apple", "red", "apple"}}
	second := memory.Posting{ID: "id-b", Terms: []string{"red", "日本", "œuvre", "not"}}
	for _, c := range []struct {
		terms []string
		want  []memory.Posting
	}{
		{[]string{"apple"}, []memory.Posting{first}},
		{[]string{"red"}, []memory.Posting{first, second}},
		{[]string{"appl", "ed", "日"}, nil},
		{[]string{"日本", "none"}, []memory.Posting{second}},
		{[]string{"œuvre"}, []memory.Posting{second}},
		{[]string{"not"}, []memory.Posting{second}},
		{[]string{"or", "and", "near"}, nil},
	} {
		if diff := cmp.Diff(memory.Lexicon{Memories: 3, Terms: 7, Postings: c.want}, ask(c.terms...)); diff != "" {
			b.Errorf("%q: %s", c.terms, diff)
		}
	}
	b.change(func(tx memory.Tx) error {
		_, err := tx.Remove(b.ctx, "id-a")
		return errors.Join(err, tx.Put(b.ctx, record(scope, "b", "blue")))
	})
	if diff := cmp.Diff(memory.Lexicon{Memories: 2, Terms: 1}, ask("apple", "red")); diff != "" {
		b.Errorf("after a removal and a change: %s", diff)
	}
}

func checkSpace(b *backendBench) {
	first := memory.Space{Dimensions: 3, Embedder: "one"}
	for _, s := range []memory.Space{first, {Dimensions: 4, Embedder: "two"}, {}} {
		if got, err := b.backend.Space(b.ctx, s); err != nil || got != first {
			b.Errorf("Space(%+v) = %+v, %v; want the first", s, got, err)
		}
	}
}

func checkReembed(b *backendBench) {
	open := func(e embed.Embedder) *memory.Local {
		b.Helper()
		store, err := memory.New(b.backend, memory.Config{Embedder: e})
		if err != nil {
			b.Fatal(err)
		}
		return store
	}
	if _, err := open(embed.NewHashed(64)).Add(b.ctx, user("ana"), said("apple", "bread"), memory.AddOptions{}); err != nil {
		b.Fatal(err)
	}
	other := open(embed.NewHashed(128))
	if _, err := other.Add(b.ctx, user("ana"), said("cake"), memory.AddOptions{}); !errors.Is(err, memory.ErrEmbedder) {
		b.Errorf("Add with another embedder = %v, want ErrEmbedder", err)
	}
	if _, err := other.Search(b.ctx, user("ana"), "apple", 1, memory.SearchOptions{}); !errors.Is(err, embed.ErrDimension) {
		b.Errorf("Search with another embedder = %v, want ErrDimension", err)
	}
	if err := other.Reembed(b.ctx); err != nil {
		b.Fatal(err)
	}
	hits, err := other.Search(b.ctx, user("ana"), "apple", 1, memory.SearchOptions{})
	if err != nil || len(hits) != 1 || hits[0].Memory.Text != "apple" {
		b.Errorf("after Reembed: %+v, %v", hits, err)
	}
	if _, err := open(embed.NewHashed(64)).Search(b.ctx, user("ana"), "apple", 1, memory.SearchOptions{}); !errors.Is(err, memory.ErrEmbedder) {
		b.Errorf("the embedder of before = %v, want ErrEmbedder", err)
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
	return memory.Verbatim{}.Extract(ctx, in)
}

func checkWindow(b *backendBench) {
	var seen []string
	store, err := memory.New(b.backend, memory.Config{Extractor: windowed{&seen}})
	if err != nil {
		b.Fatal(err)
	}
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
	if err := store.Delete(b.ctx, id, memory.DeleteOptions{}); err != nil {
		b.Fatal(err)
	}
	add(user("ana"), nil, "six") // what was said beside a deleted memory may be what it said
	if _, err := store.DeleteAll(b.ctx, user("ana"), memory.DeleteOptions{}); err != nil {
		b.Fatal(err)
	}
	add(user("ana"), nil, "seven")
	add(user("bo"), []string{"elsewhere"}, "eight")
}
