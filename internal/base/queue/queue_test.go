package queue_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/base/queue"
)

type item struct{ rank, place int }

// Whatever is pushed, moved and removed: the top has the lowest rank, and items know their places.
func TestAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := queue.New(func(a, b *item) bool { return a.rank < b.rank }, func(x *item) *int { return &x.place })
		var all []*item
		rank := rapid.IntRange(0, 20)
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				x := &item{rank: rank.Draw(t, "rank")}
				all = append(all, x)
				q.Push(x)
			},
			"move": func(t *rapid.T) {
				if len(all) > 0 {
					x := rapid.SampledFrom(all).Draw(t, "item")
					x.rank = rank.Draw(t, "rank")
					q.Moved(x)
				}
			},
			"remove": func(t *rapid.T) {
				if len(all) > 0 {
					i := rapid.IntRange(0, len(all)-1).Draw(t, "item")
					q.Remove(all[i])
					all = slices.Delete(all, i, i+1)
				}
			},
			"": func(t *rapid.T) {
				if q.Len() != len(all) {
					t.Fatalf("%d items, want %d", q.Len(), len(all))
				}
				if len(all) > 0 {
					if least := slices.MinFunc(all, func(a, b *item) int { return a.rank - b.rank }); q.Top().rank != least.rank {
						t.Fatalf("rank %d on top, want %d", q.Top().rank, least.rank)
					}
				}
			},
		})
	})
}
