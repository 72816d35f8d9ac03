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

	"github.com/ragpilot/ragpilot/memory"
)

// backendBench is what a check of a backend works with.
type backendBench struct {
	tester
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
			c.run(&backendBench{tester{t, ctx}, backend})
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

// record returns a record that differs from others.
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
	b.must(b.backend.Scan(b.ctx, memory.Scope{}, memory.Whole, func(r *memory.Record) bool {
		lines = append(lines, fmt.Sprintf("%+v %v %q", r.Memory, r.Vector, r.Entities))
		return true
	}))
	b.must(b.backend.History(b.ctx, memory.Scope{}, "", func(r *memory.Revision) bool {
		lines = append(lines, fmt.Sprintf("%+v", *r))
		return true
	}))
	messages, err := b.backend.Messages(b.ctx, memory.Log{Scope: user("ana"), Kind: "k"}, 0)
	b.must(err)
	slices.Sort(lines)
	return fmt.Sprintf("%q\n%+v\n%+v", lines, messages, b.space())
}

// steps changes everything that can be changed.
func steps(ctx context.Context, tx memory.Tx) error {
	log := memory.Log{Scope: user("ana"), Kind: "k"}
	return errors.Join(
		errorOf(tx.Remove(ctx, "id-apple")),
		errorOf(tx.Append(ctx, &memory.Revision{ID: "r2", MemoryID: "id-bread", Event: memory.Added, Scope: user("ana"), New: "bread"})),
		errorOf(tx.Erase(ctx, user("ana"), "")),
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
		return errors.Join(
			errorOf(tx.Append(b.ctx, &memory.Revision{ID: "r1", MemoryID: "id-apple", Event: memory.Added, Scope: user("ana"), New: "apple"})),
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
	b.fails("Change", err, broken)
	b.equal("a failed transaction changed something", before, b.picture())
	func() {
		defer func() { _ = recover() }() // the panic of the line below
		_ = b.backend.Change(b.ctx, func(tx memory.Tx) error {
			if err := steps(b.ctx, tx); err != nil {
				b.Error(err)
			}
			panic("boom")
		})
	}()
	b.equal("a transaction that panicked changed something", before, b.picture())
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
