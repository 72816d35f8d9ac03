package memorytest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ragpilot/ragpilot/memory"
)

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
	f.equal(fmt.Sprintf("Follow of %+v", f.scope), all, f.known, cmpopts.EquateEmpty())
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
	b.change(func(tx memory.Tx) error { return errorOf(tx.Remove(b.ctx, changed.Memory.ID)) })
	ana.check(inRun)
	b.change(func(tx memory.Tx) error { // removed and stored again: it is there
		return errors.Join(errorOf(tx.Remove(b.ctx, inRun.Memory.ID)), tx.Put(b.ctx, inRun))
	})
	ana.check(inRun)
	inRun.Memory.Scope = user("ana") // an import may move a memory to another scope
	b.change(func(tx memory.Tx) error { return tx.Put(b.ctx, inRun) })
	run.check()
	ana.check(inRun)
	want := errors.New("no")
	b.fails("a change that is taken back", b.backend.Change(b.ctx, func(tx memory.Tx) error {
		return errors.Join(tx.Put(b.ctx, record(user("ana"), "never")), want)
	}), want)
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
	b.must(b.backend.Reset(b.ctx))
	if ana.check(); ana.state.Space != (memory.Space{}) {
		b.Errorf("space after Reset %+v", ana.state.Space)
	}
	b.change(func(tx memory.Tx) error { return tx.Put(b.ctx, first) })
	ana.check(first)
}

// checkFollowForgets: more removals than a backend lists leave no follower with removed memories.
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
	b.change(func(tx memory.Tx) error { return errorOf(tx.Remove(b.ctx, "id-bread")) })
	const others = 5000
	for from := 0; from < others; from += 1000 {
		b.change(func(tx memory.Tx) error {
			for i := from; i < from+1000; i++ {
				r := record(user("bo"), fmt.Sprint("cake", i))
				if err := errors.Join(tx.Put(b.ctx, r), errorOf(tx.Remove(b.ctx, r.Memory.ID))); err != nil {
					return err
				}
			}
			return nil
		})
	}
	ana.check(stays)
}
