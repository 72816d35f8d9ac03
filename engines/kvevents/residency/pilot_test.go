package residency_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
)

func TestEventsForAPilot(t *testing.T) {
	scope := contextpilot.Scope{Replica: "r0"}
	got := residency.Events(scope, []residency.Update{
		{RequestID: "a", Resident: 32, Prompt: 50},
		{RequestID: "b", Prompt: 50, Lost: true},
		{RequestID: "c"},
		{RequestID: "d", Resident: 16, Prompt: 50, Loadable: 48, Tier: "DISK"},
		{Cleared: kvevents.Restarted},
	})
	want := []contextpilot.Event{
		{Kind: contextpilot.Shrunk, Scope: scope, Request: "a", Tokens: 32, Prompt: 50},
		{Kind: contextpilot.Gone, Scope: scope, Request: "b"},
		{Kind: contextpilot.Shrunk, Scope: scope, Request: "c"},
		{Kind: contextpilot.Moved, Scope: scope, Request: "d", Tokens: 16, Prompt: 50, Tier: "DISK"},
		{Kind: contextpilot.Cleared, Scope: scope},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestPilotLearns: what an engine evicts reaches the pilot's index, under the IDs of its plans.
func TestPilotLearns(t *testing.T) {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	scope := contextpilot.Scope{Replica: "r0"}
	observe := pilot.Sink(scope)
	x := residency.New(residency.Config{OnUpdate: func(us []residency.Update) { observe(residency.Events(contextpilot.Scope{}, us)...) }})
	blocks := func(ids ...string) (list []contextpilot.Block) {
		for _, id := range ids {
			list = append(list, contextpilot.Block{ID: id, Text: "What " + id + " says.", Tokens: 100})
		}
		return list
	}
	plan := pilot.Plan(contextpilot.Request{Scope: scope, Blocks: blocks("a", "b", "c")})
	tokens := make([]int, 300)
	x.Register(plan.RequestID, tokens, residency.Key{})
	x.Apply(&kvevents.Batch{Events: []kvevents.Event{{Kind: kvevents.Stored, Hashes: names(11, 12, 13), Tokens: tokens, BlockSize: 100}}})
	x.Served(plan.RequestID)
	observe(contextpilot.Event{Kind: contextpilot.Served, Request: plan.RequestID})

	shared := func() int {
		p := pilot.Plan(contextpilot.Request{Scope: scope, Blocks: blocks("c", "b", "a")})
		observe(contextpilot.Event{Kind: contextpilot.Gone, Request: p.RequestID}) // only a look
		return p.Prefix.Blocks
	}
	if n := shared(); n != 3 {
		t.Fatalf("%d blocks are expected to be cached, want 3", n)
	}
	x.Apply(&kvevents.Batch{Events: []kvevents.Event{removed(13)}})
	if n := shared(); n != 2 {
		t.Errorf("%d blocks are expected to be cached after the last went, want 2", n)
	}
	x.Apply(&kvevents.Batch{Events: []kvevents.Event{removed(12, 11)}})
	if n := shared(); n != 0 {
		t.Errorf("%d blocks are expected to be cached after all went", n)
	}
}

// TestLowerTiers: what the GPU gave up and a lower tier has is not lost.
func TestLowerTiers(t *testing.T) {
	var updates []residency.Update
	x := residency.New(residency.Config{OnUpdate: func(us []residency.Update) { updates = append(updates, us...) }})
	tokens := []int{1, 2, 3, 4, 5, 6, 7}
	stored := func(medium string, hashes ...int64) kvevents.Event {
		return kvevents.Event{Kind: kvevents.Stored, Hashes: names(hashes...), Tokens: tokens[:2*len(hashes)], BlockSize: 2, Medium: medium}
	}
	gone := func(medium string, hashes ...int64) kvevents.Event {
		return kvevents.Event{Kind: kvevents.Removed, Hashes: names(hashes...), Medium: medium}
	}
	x.Register("r", tokens, residency.Key{})
	x.Served("r")
	for _, c := range []struct {
		events []kvevents.Event
		want   []residency.Update
	}{
		{[]kvevents.Event{stored("", 1, 2, 3), stored("disk", 1, 2)}, nil},
		{[]kvevents.Event{gone("", 3)}, []residency.Update{{RequestID: "r", Prompt: 7, Resident: 4}}},
		{[]kvevents.Event{gone("", 2)}, []residency.Update{{RequestID: "r", Prompt: 7, Resident: 2, Loadable: 4, Tier: "DISK"}}},
		{[]kvevents.Event{gone("", 1)}, []residency.Update{{RequestID: "r", Prompt: 7, Loadable: 4, Tier: "DISK"}}},
		{[]kvevents.Event{stored("", 1, 2)}, nil},
		{[]kvevents.Event{gone("disk", 1)}, nil},
		{[]kvevents.Event{gone("", 2, 1)}, []residency.Update{{RequestID: "r", Prompt: 7, Lost: true}}},
	} {
		updates = nil
		x.Apply(&kvevents.Batch{Events: c.events})
		if diff := cmp.Diff(c.want, updates); diff != "" {
			t.Errorf("after %v: %s", c.events, diff)
		}
		if err := x.Check(); err != nil {
			t.Error(err)
		}
	}
}

// FuzzApply: no payload breaks the index.
func FuzzApply(f *testing.F) {
	f.Add([]byte("\x93\x01\x92\x95\xabBlockStored\x92\x0b\x0c\xc0\x94\x01\x02\x03\x04\x02\x92\xacBlockRemoved\x91\x0c\x00"))
	f.Add([]byte("\x92\x01\x91\x95\xabBlockStored\x91\x0c\x0b\x92\x03\x04\x02"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		x := residency.New(residency.Config{MaxBlocks: 100, MaxOrphans: 10, MaxRequests: 2})
		x.Complete(true)
		for i, tokens := range [][]int{{1, 2, 3, 4}, {1, 2}, {1}} {
			x.Register(string(rune('a'+i)), tokens, residency.Key{})
			x.Served(string(rune('a' + i)))
		}
		var d kvevents.Decoder
		for range 2 {
			b, err := d.Decode(payload)
			if err != nil {
				return
			}
			x.Apply(b)
			if err := x.Check(); err != nil {
				t.Fatal(err)
			}
			x.Clear(kvevents.Resyncing)
			x.Complete(true)
			if err := x.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
