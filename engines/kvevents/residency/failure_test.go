package residency_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
)

// bench is an index whose updates are collected.
type bench struct {
	*residency.Index
	t       *testing.T
	updates []residency.Update
}

func newBench(t *testing.T, cfg residency.Config) *bench {
	b := &bench{t: t}
	cfg.OnUpdate = func(us []residency.Update) { b.updates = append(b.updates, us...) }
	b.Index = residency.New(cfg)
	b.Complete(true)
	return b
}

func (b *bench) apply(events ...kvevents.Event) { b.Apply(&kvevents.Batch{Events: events}) }

// ask registers a request and has it answered.
func (b *bench) ask(id string, tokens []int) {
	b.Register(id, tokens, residency.Key{})
	b.Served(id)
}

func (b *bench) resident(id string, want int) {
	b.t.Helper()
	if got, _ := b.Resident(id); got != want {
		b.t.Errorf("%s: %d tokens resident, want %d", id, got, want)
	}
	if err := b.Check(); err != nil {
		b.t.Error(err)
	}
}

// updated checks the updates since the last call, but for the lengths of prompts: see TestUpdatesHaveThePrompt.
func (b *bench) updated(want ...residency.Update) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.updates, cmpopts.IgnoreFields(residency.Update{}, "Prompt")); diff != "" {
		b.t.Error(diff)
	}
	b.updates = nil
}

func names(hashes ...int64) []kvevents.Hash {
	list := make([]kvevents.Hash, len(hashes))
	for i, h := range hashes {
		list[i] = kvevents.Int(h)
	}
	return list
}

// stored makes an event of blocks of two tokens; parent 0 is none.
func stored(parent int64, tokens []int, hashes ...int64) kvevents.Event {
	ev := kvevents.Event{Kind: kvevents.Stored, Hashes: names(hashes...), Tokens: tokens, BlockSize: 2}
	if parent != 0 {
		ev.Parent = kvevents.Int(parent)
	}
	return ev
}

func removed(hashes ...int64) kvevents.Event {
	return kvevents.Event{Kind: kvevents.Removed, Hashes: names(hashes...)}
}

func on(medium string, ev kvevents.Event) kvevents.Event {
	ev.Medium = medium
	return ev
}

var abcdef = []int{1, 2, 3, 4, 5, 6}

func TestEventsBeforeTheRequest(t *testing.T) {
	b := newBench(t, residency.Config{})
	b.apply(stored(0, abcdef, 11, 12, 13))
	b.ask("r", abcdef)
	b.resident("r", 6)
	b.apply(removed(13))
	b.updated(residency.Update{RequestID: "r", Resident: 4})
	b.apply(removed(12, 11))
	b.updated(residency.Update{RequestID: "r", Lost: true})
}

// TestRequestBeforeItsEvents: what was never there is not lost, even if other requests' blocks go.
func TestRequestBeforeItsEvents(t *testing.T) {
	b := newBench(t, residency.Config{})
	b.apply(stored(0, abcdef[:4], 11, 12))
	b.apply(removed(12)) // of a stranger
	b.Register("r", abcdef, residency.Key{})
	b.apply(removed(11))
	b.updated(residency.Update{RequestID: "r"}) // still to be computed
	b.Served("r")                               // its events are late
	b.apply(stored(0, []int{7, 8}, 14), removed(14))
	b.Register("s", []int{9, 9}, residency.Key{})
	b.Served("s")
	b.updated(residency.Update{RequestID: "r", Lost: true})
	b.apply(stored(0, []int{9, 9}, 15), removed(15), stored(0, []int{9, 9}, 15))
	b.resident("s", 2)
	b.updated()
}

func TestNeverStoredIsNotLost(t *testing.T) {
	b := newBench(t, residency.Config{})
	b.ask("before any event", abcdef)
	b.apply(stored(0, []int{9, 9}, 10))
	b.ask("after it", abcdef)
	b.apply(kvevents.Event{Kind: kvevents.Cleared})
	b.updated(residency.Update{Cleared: kvevents.EngineCleared})
	b.apply(stored(0, abcdef, 11, 12, 13)) // the late events
	b.resident("before any event", 6)
	b.resident("after it", 6)
}

func TestTwoCopiesOneRemoved(t *testing.T) {
	b := newBench(t, residency.Config{})
	b.ask("r", abcdef)
	b.apply(stored(0, abcdef, 11, 12, 13), stored(12, abcdef[4:], 13))
	b.apply(removed(13))
	b.resident("r", 6)
	b.updated()
	b.apply(removed(13))
	b.resident("r", 4)
	b.updated(residency.Update{RequestID: "r", Resident: 4})
}

func TestUnknownHash(t *testing.T) {
	b := newBench(t, residency.Config{})
	b.ask("r", abcdef)
	b.apply(stored(0, abcdef, 11, 12, 13), removed(99))
	n, complete := b.Resident("r")
	if s := b.Stats(); n != 6 || complete || s.Unknown != 1 || !s.Inconsistent {
		t.Errorf("%d, complete %v, %+v", n, complete, s)
	}
	b.Clear(kvevents.Requested)
	if _, complete := b.Resident("r"); !complete {
		t.Error("not complete after it was cleared")
	}
}

func TestUnknownParent(t *testing.T) {
	b := newBench(t, residency.Config{})
	b.ask("r", abcdef)
	b.apply(stored(11, abcdef[2:4], 12), stored(12, abcdef[4:], 13), stored(98, []int{7, 8}, 14))
	b.resident("r", 0)
	if _, complete := b.Resident("r"); complete || b.Stats().OrphansNow != 3 {
		t.Errorf("%+v", b.Stats())
	}
	b.apply(stored(0, abcdef[:2], 11)) // the parent shows up
	b.resident("r", 6)
	b.apply(removed(14))
	if s := b.Stats(); s.OrphansNow != 0 || !s.Complete {
		t.Errorf("%+v", s)
	}
	b.apply(removed(11))
	b.updated(residency.Update{RequestID: "r"})
	b.apply(removed(13, 12))
	b.updated(residency.Update{RequestID: "r", Lost: true})
}

// TestOrphanRemovedFirst: an orphan that is gone does not come back with its parent.
func TestOrphanRemovedFirst(t *testing.T) {
	b := newBench(t, residency.Config{})
	b.ask("r", abcdef)
	b.apply(stored(11, abcdef[2:], 12, 13), stored(11, abcdef[2:4], 12), removed(12, 12, 13))
	b.apply(stored(0, abcdef[:2], 11))
	b.resident("r", 2)
	if s := b.Stats(); s.Unknown != 0 {
		t.Errorf("%+v", s)
	}
}

func TestOrphansAreBounded(t *testing.T) {
	b := newBench(t, residency.Config{MaxOrphans: 4})
	for i := range int64(100) {
		b.apply(stored(1000+i, abcdef[:2], 2000+i))
	}
	if s := b.Stats(); s.OrphansNow != 4 || s.Overflow != 96 {
		t.Errorf("%+v", s)
	}
}

func TestAbortedRequest(t *testing.T) {
	b := newBench(t, residency.Config{})
	b.Register("r", abcdef, residency.Key{})
	b.apply(stored(0, abcdef[:4], 11, 12)) // a part
	b.Aborted("r")
	b.resident("r", 4)
	b.apply(removed(12, 11))
	b.updated(residency.Update{RequestID: "r", Lost: true})
}

// TestPreempted: a request under way may lose its blocks and get them back.
func TestPreempted(t *testing.T) {
	b := newBench(t, residency.Config{})
	b.Register("r", abcdef, residency.Key{})
	b.apply(stored(0, abcdef, 11, 12, 13), removed(13, 12, 11))
	b.apply(stored(0, abcdef, 11, 12, 13))
	b.updated()
	b.apply(removed(13, 12, 11))
	b.updated(residency.Update{RequestID: "r"})
	b.Served("r")
	b.updated(residency.Update{RequestID: "r", Lost: true})
}

func TestRetryWithTheSameID(t *testing.T) {
	b := newBench(t, residency.Config{})
	b.ask("r", abcdef)
	b.apply(stored(0, abcdef, 11, 12, 13))
	b.Register("r", []int{7, 8}, residency.Key{})
	b.resident("r", 0)
	b.apply(removed(13, 12, 11))
	b.updated()
	b.apply(stored(0, []int{7, 8}, 14))
	b.resident("r", 2)
}

func TestFirstBlockGoesFirst(t *testing.T) {
	b := newBench(t, residency.Config{})
	b.ask("r", abcdef)
	b.apply(stored(0, abcdef, 11, 12, 13))
	b.apply(removed(11))
	b.apply(removed(12))
	b.updated(residency.Update{RequestID: "r"})
	b.apply(stored(0, abcdef[:2], 11))
	b.resident("r", 2)
	b.apply(removed(11))
	b.apply(removed(13))
	b.updated(residency.Update{RequestID: "r"}, residency.Update{RequestID: "r", Lost: true})
}

// TestHeadToTail: SGLang removes a node's pages in that order, in one event.
func TestHeadToTail(t *testing.T) {
	b := newBench(t, residency.Config{})
	b.ask("r", abcdef)
	b.apply(stored(0, abcdef, 11, 12, 13))
	b.apply(removed(12, 13))
	b.updated(residency.Update{RequestID: "r", Resident: 2})
}

func TestTiersAreCountedApart(t *testing.T) {
	b := newBench(t, residency.Config{})
	b.ask("r", abcdef)
	cpu := on("CPU", stored(0, abcdef, 11, 12, 13))
	b.apply(stored(0, abcdef, 11, 12, 13), cpu, on("cpu", stored(12, abcdef[4:], 13)))
	b.apply(on("gpu", removed(13)), removed(12))
	b.resident("r", 2)
	if n := b.Loadable("r"); n != 6 {
		t.Errorf("%d tokens can be loaded", n)
	}
	b.apply(on("CPU", removed(13)))
	if n := b.Loadable("r"); n != 6 {
		t.Errorf("%d tokens can be loaded, one copy is left", n)
	}
	b.apply(on("CPU", removed(13, 13)))
	if n := b.Loadable("r"); n != 4 {
		t.Errorf("%d tokens can be loaded", n)
	}
	if s := b.Stats(); s.UnknownLower != 1 || !s.Complete || !cmp.Equal(s.Lower, map[string]int{"CPU": 2}) {
		t.Errorf("%+v", s)
	}
	b.apply(removed(11))
	b.updated(residency.Update{RequestID: "r", Resident: 2, Loadable: 6, Tier: "CPU"},
		residency.Update{RequestID: "r", Loadable: 4, Tier: "CPU"})
	remote := stored(0, []int{8, 8}, 21)
	remote.Locality = "REMOTE"
	b.apply(remote)
	if n := b.Prefix([]int{8, 8}, residency.Key{}); n != 0 {
		t.Errorf("%d tokens of another host are resident", n)
	}
}

// TestOtherBlocksInLowerTiers: a tier that cuts prompts otherwise, as LMCache does, says nothing about the GPU's blocks.
func TestOtherBlocksInLowerTiers(t *testing.T) {
	b := newBench(t, residency.Config{})
	chunk := func(size int, hash int64) kvevents.Event {
		tokens := make([]int, size)
		return on("CPU", kvevents.Event{Kind: kvevents.Stored, Hashes: names(hash), Tokens: tokens, BlockSize: size})
	}
	b.Register("r", abcdef, residency.Key{})
	b.apply(chunk(8, 91)) // before any block of the GPU
	b.apply(stored(0, abcdef, 11, 12, 13))
	b.Served("r")
	for i := range int64(20) {
		b.apply(chunk(8, 100+i), chunk(1, 200+i))
		b.apply(stored(13, []int{7, int(i)}, 300+i))
	}
	b.resident("r", 6)
	if n := b.Prefix(abcdef, residency.Key{}); n != 6 {
		t.Errorf("%d tokens are resident", n)
	}
	b.apply(on("CPU", removed(91)))
	if s := b.Stats(); s.BlockSize != 2 || s.Recut+s.Forgotten+s.UnknownLower > 0 || s.HashesOnly != 41 || s.Lower["CPU"] != 40 ||
		!s.Complete {
		t.Errorf("%+v", s)
	}
}

func TestPairsOfTokens(t *testing.T) {
	b := newBench(t, residency.Config{})
	b.apply(kvevents.Event{Kind: kvevents.Stored, Hashes: names(11, 12), Tokens: abcdef[:5], BlockSize: 2, Bigram: true})
	for _, c := range []struct {
		tokens []int
		want   int
	}{{abcdef, 4}, {abcdef[:5], 4}, {abcdef[:4], 2}, {[]int{1, 2, 9, 4, 5}, 0}, {[]int{1, 2, 3, 4, 9}, 2}} {
		if got := b.Prefix(c.tokens, residency.Key{}); got != c.want {
			t.Errorf("%v: %d, want %d", c.tokens, got, c.want)
		}
	}
}

// TestOneNameForTwoBlocks: the second one is believed, and the index says that it does not know all.
func TestOneNameForTwoBlocks(t *testing.T) {
	b := newBench(t, residency.Config{})
	b.ask("r", abcdef[:2])
	b.ask("s", []int{8, 8})
	b.apply(stored(0, abcdef[:2], 11), stored(0, []int{8, 8}, 11))
	b.resident("s", 2)
	b.resident("r", 0)
	b.apply(removed(11, 11))
	b.resident("s", 0)
	if s := b.Stats(); s.Conflicts != 1 || s.Complete {
		t.Errorf("%+v", s)
	}
}

// TestTwoNamesForOneBlock: it is there as long as one of them is.
func TestTwoNamesForOneBlock(t *testing.T) {
	b := newBench(t, residency.Config{})
	b.ask("r", abcdef[:2])
	b.apply(stored(0, abcdef[:2], 11), removed(11))
	b.apply(stored(0, abcdef[:2], 12), stored(0, abcdef[:2], 13), removed(13))
	b.resident("r", 2)
	b.apply(removed(12))
	b.resident("r", 0)
	b.ask("s", abcdef[:2])
	b.apply(stored(0, abcdef[:2], 14), removed(14), stored(0, abcdef[:2], 15))
	b.resident("s", 2)
}

// TestCleared: requests that have ended are lost, those under way go on.
func TestCleared(t *testing.T) {
	b := newBench(t, residency.Config{Replica: "r0"})
	b.ask("ended", abcdef)
	b.Register("under way", abcdef[:4], residency.Key{})
	b.apply(stored(0, abcdef, 11, 12, 13))
	b.apply(kvevents.Event{Kind: kvevents.Cleared}, stored(0, abcdef[:4], 11, 12))
	b.resident("under way", 4)
	b.updated(
		residency.Update{Replica: "r0", RequestID: "ended", Lost: true},
		residency.Update{Replica: "r0", RequestID: "under way"},
		residency.Update{Replica: "r0", Cleared: kvevents.EngineCleared},
	)
}

// TestUpdatesHaveThePrompt: who counts in other tokens needs the engine's number of them.
func TestUpdatesHaveThePrompt(t *testing.T) {
	var got []residency.Update
	x := residency.New(residency.Config{OnUpdate: func(us []residency.Update) { got = append(got, us...) }})
	x.Register("before the first event", []int{1, 2, 3, 4, 5}, residency.Key{})
	x.Apply(&kvevents.Batch{Events: []kvevents.Event{stored(0, abcdef[:4], 11, 12)}})
	x.Register("after it", abcdef[:4], residency.Key{})
	x.Served("after it")
	x.Apply(&kvevents.Batch{Events: []kvevents.Event{removed(12)}})
	x.Apply(&kvevents.Batch{Events: []kvevents.Event{{Kind: kvevents.Cleared}}})
	want := []residency.Update{
		{RequestID: "before the first event", Resident: 2, Prompt: 5},
		{RequestID: "after it", Resident: 2, Prompt: 4},
		{RequestID: "before the first event", Prompt: 5},
		{RequestID: "after it", Prompt: 4, Lost: true},
		{Cleared: kvevents.EngineCleared},
	}
	byID := cmpopts.SortSlices(func(a, b residency.Update) bool {
		return a.RequestID > b.RequestID || a.RequestID == b.RequestID && a.Resident > b.Resident
	})
	if diff := cmp.Diff(want, got, byID); diff != "" {
		t.Error(diff)
	}
}

// TestUpdatesMayCallBack: a receiver may use the index, and sees updates in order.
func TestUpdatesMayCallBack(t *testing.T) {
	var got []string
	var x *residency.Index
	x = residency.New(residency.Config{OnUpdate: func(us []residency.Update) {
		for _, u := range us {
			got = append(got, u.RequestID)
			x.Drop(u.RequestID)
			x.Apply(&kvevents.Batch{Events: []kvevents.Event{removed(21)}})
		}
	}})
	for id, token := range map[string]int{"r": 1, "s": 2} {
		x.Register(id, []int{token, token}, residency.Key{})
	}
	x.Apply(&kvevents.Batch{Events: []kvevents.Event{stored(0, []int{1, 1}, 11), stored(0, []int{2, 2}, 21)}})
	x.Apply(&kvevents.Batch{Events: []kvevents.Event{removed(11)}})
	if !slices.Equal(got, []string{"r", "s"}) {
		t.Error(got)
	}
}

// TestResync: while the history comes once more nothing is reported, and then only what has changed.
func TestResync(t *testing.T) {
	b := newBench(t, residency.Config{})
	b.ask("stays", abcdef)
	b.ask("shrinks", []int{1, 2, 7, 8})
	b.ask("goes", []int{9, 9})
	b.apply(stored(0, abcdef, 11, 12, 13), stored(11, []int{7, 8}, 14), stored(0, []int{9, 9}, 15), removed(99))
	b.Complete(false)
	b.Clear(kvevents.Resyncing)
	b.apply(kvevents.Event{Kind: kvevents.Cleared}, stored(0, abcdef, 11, 12, 13), stored(0, []int{5, 5}, 16))
	b.resident("stays", 6)
	b.updated()
	b.Complete(true)
	b.updated(residency.Update{RequestID: "shrinks", Resident: 2}, residency.Update{RequestID: "goes", Lost: true})
	b.resident("shrinks", 2)
	if _, complete := b.Resident("stays"); !complete || b.Stats().Requests != 2 {
		t.Errorf("%+v", b.Stats())
	}
	b.apply(removed(13))
	b.updated(residency.Update{RequestID: "stays", Resident: 4})
}
