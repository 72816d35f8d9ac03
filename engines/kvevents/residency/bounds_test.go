package residency_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
)

// TestRequestsAreBounded: memory for requests is, and the index forgets what it no longer needs.
func TestRequestsAreBounded(t *testing.T) {
	b := newBench(t, residency.Config{MaxRequests: 3})
	b.apply(stored(0, abcdef, 11, 12, 13))
	for i := range 100 {
		b.ask(string(rune('a'+i)), []int{1, 2, i + 100, 7})
	}
	if s := b.Stats(); s.Requests != 3 || s.Forgotten != 97 || s.Blocks != 6 {
		t.Errorf("%+v", s)
	}
	for i := range 100 {
		b.Drop(string(rune('a' + i)))
	}
	b.apply(removed(11, 12, 13))
	if s := b.Stats(); s.Requests != 0 || s.Blocks != 0 || s.Hashes != 0 {
		t.Errorf("%+v", s)
	}
}

func TestBlocksAreBounded(t *testing.T) {
	b := newBench(t, residency.Config{MaxBlocks: 10})
	for i := range 50 {
		b.apply(stored(0, []int{i, i, 1, 1}, int64(2*i+1), int64(2*i+2)))
	}
	if s := b.Stats(); s.Blocks > 10 || s.Hashes > 10 || s.Overflow == 0 || s.Complete {
		t.Errorf("%+v", s)
	}
	b.ask("r", []int{90, 90, 1, 1})
	if err := b.Check(); err != nil {
		t.Error(err)
	}
	b.apply(kvevents.Event{Kind: kvevents.Cleared}, stored(0, []int{1, 1}, 1))
	if s := b.Stats(); s.Hashes != 1 || !s.Complete {
		t.Errorf("%+v", s)
	}
}

// TestOldRequestsMakeWay: a block that is never evicted keeps no request alive for ever. What requests wait for gives way
// to the engine's blocks, the oldest first, and nothing of the engine's is missed.
func TestOldRequestsMakeWay(t *testing.T) {
	const limit, own = 1000, 20
	b := newBench(t, residency.Config{MaxBlocks: limit})
	system := []int{1, 2}
	b.apply(stored(0, system, 1))
	block := func(request, i int) int64 { return int64(1000 + request*own + i) }
	for r := range 300 {
		tokens := slices.Clone(system)
		var hashes []int64
		for i := range own {
			tokens = append(tokens, r, i)
			hashes = append(hashes, block(r, i))
		}
		id := fmt.Sprint("r", r)
		b.Register(id, tokens, residency.Key{})
		if old := r - 3; old >= 0 { // the engine holds three
			for i := range own {
				b.apply(removed(block(old, own-1-i)))
			}
		}
		b.apply(stored(1, tokens[2:], hashes...))
		b.Served(id)
		b.resident(id, len(tokens))
		if s := b.Stats(); !s.Complete || s.Unknown+s.Overflow > 0 || s.Blocks > limit {
			t.Fatalf("after %d requests: %+v", r+1, s)
		}
	}
	if s := b.Stats(); s.Forgotten == 0 || s.Requests < 3 || s.Forgotten+uint64(s.Requests) != 300 {
		t.Errorf("%+v", s)
	}
	b.Clear(kvevents.Resyncing) // the engine's blocks are not known for a while: no reason to forget requests
	before := b.Stats().Requests
	b.Register("during", system, residency.Key{})
	b.apply(kvevents.Event{Kind: kvevents.Cleared}, stored(0, system, 1))
	b.Complete(true)
	if s := b.Stats(); s.Requests < before-3 {
		t.Errorf("%d requests before the history came again: %+v", before, s)
	}
	if err := b.Check(); err != nil {
		t.Error(err)
	}
}

// TestLargeEngine: requests take nothing from an engine that needs nearly all blocks, and the latest are followed.
func TestLargeEngine(t *testing.T) {
	b := newBench(t, residency.Config{MaxBlocks: 100})
	for i := range 90 {
		b.apply(stored(0, []int{i, i}, int64(i+1)))
	}
	for i := range 90 {
		b.ask(fmt.Sprint("r", i), []int{i, i})
	}
	for i := range 1000 {
		b.ask(fmt.Sprint("never stored ", i), []int{i, -1})
	}
	b.ask("r", []int{5, 5})
	b.resident("r", 2)
	b.apply(stored(0, []int{7, 8}, 1000))
	if s := b.Stats(); !s.Complete || s.Overflow > 0 || s.Requests < 2 {
		t.Errorf("%+v", s)
	}
}
