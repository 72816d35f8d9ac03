package memorytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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
		{"Follow", checkFollow},
		{"FollowForgets", checkFollowForgets},
		{"Space", checkSpace},
		{"Reembed", checkReembed},
		{"Fill", checkFill},
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
func record(scope memory.Scope, text string) *memory.Record {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC)
	return &memory.Record{
		Memory: memory.Memory{
			ID: "id-" + text, Text: text, Hash: memory.HashOf(text), Scope: scope, Role: "user", Actor: "ana",
			Metadata: map[string]any{"n": 1.0}, CreatedAt: at, UpdatedAt: at.Add(time.Hour), ExpiresAt: at.AddDate(1, 0, 0),
		},
		Vector: []float32{1, float32(len(text)), -0.25}, Entities: []string{text, "ana maria"},
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
	slices.Sort(lines)
	return fmt.Sprintf("%q\n%+v\n%+v", lines, messages, b.space())
}

// steps changes everything that can be changed.
func steps(ctx context.Context, tx memory.Tx) error {
	log := memory.Log{Scope: user("ana"), Kind: "k"}
	_, removed := tx.Remove(ctx, "id-apple")
	_, appended := tx.Append(ctx, &memory.Revision{ID: "r2", MemoryID: "id-bread", Event: memory.Added, Scope: user("ana"), New: "bread"})
	_, erased := tx.EraseScope(ctx, user("ana"))
	return errors.Join(
		removed, appended, erased,
		tx.Put(ctx, record(user("ana"), "bread")),
		tx.SetVector(ctx, "id-cake", []float32{0, 0, 9}),
		tx.SetSpace(ctx, memory.Space{Dimensions: 3, Embedder: "other"}),
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
			tx.Put(b.ctx, record(user("ana"), "apple")),
			tx.Put(b.ctx, record(memory.Scope{User: "bo", Run: "7"}, "cake")),
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
		r := record(user("ana"), "bread")
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
				r := record(user("ana"), "apple")
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
	b.change(func(tx memory.Tx) error {
		bare := record(user("ana"), "bread")
		bare.Vector = nil
		return tx.Put(b.ctx, bare)
	})
	bare := record(user("ana"), "bread")
	for part, want := range map[memory.Part][]memory.Record{
		memory.Memories:   {{Memory: want.Memory}, {Memory: bare.Memory}},
		memory.Whole:      {*want, {Memory: bare.Memory, Entities: bare.Entities}},
		memory.Unembedded: {{Memory: bare.Memory}},
	} {
		var got []memory.Record
		err := b.backend.Scan(b.ctx, user("ana"), part, func(r *memory.Record) bool {
			one := memory.Record{Memory: r.Memory}
			if part == memory.Whole {
				one.Vector, one.Entities = slices.Clone(r.Vector), slices.Clone(r.Entities)
			}
			got = append(got, one)
			return true
		})
		slices.SortFunc(got, func(x, y memory.Record) int { return strings.Compare(x.Memory.ID, y.Memory.ID) })
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			b.Errorf("part %d: %v: %s", part, err, diff)
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

// follower keeps what Follow reports of a scope.
type follower struct {
	*backendBench
	scope  memory.Scope
	state  memory.State
	known  map[string]memory.Record
	resets int
}

func (b *backendBench) follow(scope memory.Scope) *follower {
	return &follower{backendBench: b, scope: scope, known: map[string]memory.Record{}}
}

// check follows the scope and compares what is known then with what there is. news is how many records were reported.
func (f *follower) check(want ...*memory.Record) (news int) {
	f.Helper()
	state, err := f.backend.Follow(f.ctx, f.scope, f.state.Version, memory.Changes{
		Reset:  func() { clear(f.known); f.resets++ },
		Remove: func(id string) { delete(f.known, id) },
		Put: func(r *memory.Record) {
			news++
			f.known[r.Memory.ID] = followed(r)
		},
	})
	if err != nil {
		f.Fatalf("Follow: %v", err)
	}
	f.state = state
	all := map[string]memory.Record{}
	for _, r := range want {
		all[r.Memory.ID] = followed(r)
	}
	if diff := cmp.Diff(all, f.known, cmpopts.EquateEmpty()); diff != "" {
		f.Errorf("Follow of %+v: %s", f.scope, diff)
	}
	return news
}

// followed is what Follow has to report of a record.
func followed(r *memory.Record) memory.Record {
	m := &r.Memory
	return memory.Record{
		Memory: memory.Memory{ID: m.ID, Text: m.Text, Role: m.Role, CreatedAt: m.CreatedAt, ExpiresAt: m.ExpiresAt},
		Vector: slices.Clone(r.Vector), Entities: slices.Clone(r.Entities),
	}
}

func checkFollow(b *backendBench) {
	ana, run := b.follow(user("ana")), b.follow(memory.Scope{User: "ana", Run: "7"})
	ana.check()
	first, elsewhere := record(user("ana"), "apple"), record(user("bo"), "cake")
	b.change(func(tx memory.Tx) error { return errors.Join(tx.Put(b.ctx, first), tx.Put(b.ctx, elsewhere)) })
	ana.check(first)
	if n := ana.check(first); n != 0 {
		b.Errorf("nothing has changed, and %d records were reported", n)
	}
	inRun := record(memory.Scope{User: "ana", Run: "7"}, "dates")
	changed := record(user("ana"), "apple")
	changed.Memory.Text, changed.Memory.Hash = "pear", memory.HashOf("pear")
	b.change(func(tx memory.Tx) error { return errors.Join(tx.Put(b.ctx, inRun), tx.Put(b.ctx, changed)) })
	ana.check(changed, inRun)
	run.check(inRun)
	changed.Vector = []float32{0, 0, 9}
	b.change(func(tx memory.Tx) error { return tx.SetVector(b.ctx, changed.Memory.ID, changed.Vector) })
	ana.check(changed, inRun)
	b.change(func(tx memory.Tx) error {
		_, err := tx.Remove(b.ctx, changed.Memory.ID)
		return err
	})
	ana.check(inRun)
	b.change(func(tx memory.Tx) error { // removed and stored again: it is there
		_, err := tx.Remove(b.ctx, inRun.Memory.ID)
		return errors.Join(err, tx.Put(b.ctx, inRun))
	})
	ana.check(inRun)
	inRun.Memory.Scope = user("ana") // an import may move a memory to another scope
	b.change(func(tx memory.Tx) error { return tx.Put(b.ctx, inRun) })
	run.check()
	ana.check(inRun)
	want := errors.New("no")
	if err := b.backend.Change(b.ctx, func(tx memory.Tx) error {
		return errors.Join(tx.Put(b.ctx, record(user("ana"), "never")), want)
	}); !errors.Is(err, want) {
		b.Fatal(err)
	}
	ana.check(inRun)
	b.change(func(tx memory.Tx) error { return tx.DropVectors(b.ctx) })
	bare := *inRun
	bare.Vector = nil
	ana.check(&bare)
	space := memory.Space{Dimensions: 3, Embedder: "one"}
	b.change(func(tx memory.Tx) error { return tx.SetSpace(b.ctx, space) })
	if ana.check(&bare); ana.state.Space != space {
		b.Errorf("space %+v, want %+v", ana.state.Space, space)
	}
	if err := b.backend.Reset(b.ctx); err != nil {
		b.Fatal(err)
	}
	if ana.check(); ana.state.Space != (memory.Space{}) {
		b.Errorf("space after Reset %+v", ana.state.Space)
	}
	b.change(func(tx memory.Tx) error { return tx.Put(b.ctx, first) })
	ana.check(first)
}

// checkFollowForgets: more removals than a backend lists leave nobody with what is gone.
func checkFollowForgets(b *backendBench) {
	if testing.Short() {
		b.Skip("writes 5,000 rows")
	}
	ana := b.follow(user("ana"))
	stays := record(user("ana"), "apple")
	b.change(func(tx memory.Tx) error {
		return errors.Join(tx.Put(b.ctx, stays), tx.Put(b.ctx, record(user("ana"), "bread")))
	})
	ana.check(stays, record(user("ana"), "bread"))
	b.change(func(tx memory.Tx) error {
		_, err := tx.Remove(b.ctx, "id-bread")
		return err
	})
	const others = 5000
	for from := 0; from < others; from += 1000 {
		b.change(func(tx memory.Tx) error {
			for i := from; i < from+1000; i++ {
				r := record(user("bo"), fmt.Sprint("cake", i))
				if err := tx.Put(b.ctx, r); err != nil {
					return err
				}
				if _, err := tx.Remove(b.ctx, r.Memory.ID); err != nil {
					return err
				}
			}
			return nil
		})
	}
	ana.check(stays)
}

// space returns the space.
func (b *backendBench) space() (space memory.Space) {
	b.Helper()
	b.change(func(tx memory.Tx) (err error) {
		space, err = tx.Space(b.ctx)
		return err
	})
	return space
}

func checkSpace(b *backendBench) {
	if got := b.space(); got != (memory.Space{}) {
		b.Errorf("space of an empty backend: %+v", got)
	}
	for _, want := range []memory.Space{{Dimensions: 3, Embedder: "one"}, {Dimensions: 4}, {}} {
		b.change(func(tx memory.Tx) error {
			err := tx.SetSpace(b.ctx, want)
			if got, other := tx.Space(b.ctx); got != want || other != nil {
				b.Errorf("in its transaction: %+v, %v; want %+v", got, other, want)
			}
			return err
		})
		if got := b.space(); got != want {
			b.Errorf("space %+v, want %+v", got, want)
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
	if err := open(embed.NewHashed(128)).Reembed(b.ctx); err != nil {
		b.Fatal(err)
	}
	hits, err := other.Search(b.ctx, user("ana"), "apple", 1, memory.SearchOptions{}) // which has seen the vectors of before
	if err != nil || len(hits) != 1 || hits[0].Memory.Text != "apple" || hits[0].Semantic < 0.99 {
		b.Errorf("after Reembed: %+v, %v", hits, err)
	}
	if _, err := open(embed.NewHashed(64)).Search(b.ctx, user("ana"), "apple", 1, memory.SearchOptions{}); !errors.Is(err, memory.ErrEmbedder) {
		b.Errorf("the embedder of before = %v, want ErrEmbedder", err)
	}
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
	if err != nil {
		b.Fatal(err)
	}
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
		if _, err := store.Add(b.ctx, user("ana"), said(texts...), memory.AddOptions{}); err != nil {
			b.Fatal(err)
		}
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
