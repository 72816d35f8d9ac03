package residency_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/tinylib/msgp/msgp"

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

func TestSaltAndLoRA(t *testing.T) {
	array := func(elements ...string) []byte {
		b := msgp.AppendArrayHeader(nil, uint32(len(elements)))
		for _, e := range elements {
			b = msgp.AppendString(b, e)
		}
		return b
	}
	plain := stored(0, abcdef, 1, 2, 3)
	vllmSalt := stored(0, abcdef, 11, 12, 13)
	vllmSalt.Extra = [][]byte{array("a"), nil, nil}
	sglangSalt := stored(0, abcdef[:2], 21)
	sglangSalt.Salt = []byte("b")
	sglangMore := stored(21, abcdef[2:], 22, 23)
	sglangMore.Salt = []byte("b")
	vllmLoRA := stored(0, abcdef, 31, 32, 33)
	vllmLoRA.LoRA, vllmLoRA.Extra = "sql", [][]byte{array("sql", "a"), array("sql"), array("sql")}
	oldLoRA := stored(0, abcdef, 41, 42, 43)
	oldLoRA.LoRA = "7"
	image := stored(0, abcdef, 51, 52, 53)
	image.Extra = [][]byte{msgp.AppendInt(msgp.AppendString(msgp.AppendArrayHeader(nil, 2), "img"), 0), nil, nil}

	b := newBench(t, residency.Config{})
	b.apply(vllmSalt, sglangSalt, sglangMore, vllmLoRA, oldLoRA, image)
	for _, c := range []struct {
		key  residency.Key
		want int
	}{
		{residency.Key{}, 0},
		{residency.Key{Salt: "a"}, 6},
		{residency.Key{Salt: "b"}, 6},
		{residency.Key{Salt: "c"}, 0},
		{residency.Key{LoRA: "sql", Salt: "a"}, 6},
		{residency.Key{LoRA: "sql"}, 0},
		{residency.Key{LoRA: "a"}, 0},
		{residency.Key{LoRA: "7"}, 6},
		{residency.Key{Salt: "7"}, 0},
	} {
		if got := b.Prefix(abcdef, c.key); got != c.want {
			t.Errorf("%+v: %d, want %d", c.key, got, c.want)
		}
	}
	b.apply(plain)
	if got := b.Prefix(abcdef, residency.Key{}); got != 6 {
		t.Errorf("without extra keys: %d", got)
	}
	b.apply(removed(11))
	if got := b.Prefix(abcdef, residency.Key{}); got != 6 {
		t.Errorf("after another tenant's block went: %d", got)
	}
}

// TestBlockSizeComesFromTheEvent: the request waits until the size is known, and another size means another engine.
func TestBlockSizeComesFromTheEvent(t *testing.T) {
	b := newBench(t, residency.Config{})
	b.ask("r", abcdef)
	if s := b.Stats(); s.Waiting != 1 || s.BlockSize != 0 {
		t.Errorf("%+v", s)
	}
	three := kvevents.Event{Kind: kvevents.Stored, Hashes: names(11, 12), Tokens: abcdef, BlockSize: 3}
	b.apply(three)
	b.resident("r", 6)
	if s := b.Stats(); s.Waiting != 0 || s.BlockSize != 3 {
		t.Errorf("%+v", s)
	}
	page := stored(12, []int{7, 8}, 13) // the last page of a prompt is shorter
	b.apply(page)
	b.resident("r", 6)
	four := kvevents.Event{Kind: kvevents.Stored, Hashes: names(14), Tokens: []int{1, 2, 3, 4}, BlockSize: 4}
	b.apply(four)
	b.resident("r", 0) // cut in another way, and forgotten
	b.ask("s", abcdef)
	b.resident("s", 4)
	for i := range int64(16) {
		b.apply(stored(0, abcdef[:2], 100+i))
	}
	if s := b.Stats(); s.BlockSize != 2 || s.Recut != 2 || s.Forgotten != 2 {
		t.Errorf("%+v", s)
	}
}

// TestSilentStream: without an event the block size is not known, and prompts are kept only up to a bound.
func TestSilentStream(t *testing.T) {
	b := newBench(t, residency.Config{MaxWaiting: 30})
	for i := range 10 {
		b.ask(fmt.Sprint("r", i), []int{i, 1, 2, 3, 4, 5})
	}
	if s := b.Stats(); s.Waiting != 5 || s.Requests != 5 || s.Forgotten != 5 || s.Kept != 30 {
		t.Errorf("%+v", s)
	}
	b.ask("r9", []int{9, 1}) // again
	b.Drop("r8")
	if s := b.Stats(); s.Waiting != 4 || s.Kept != 20 {
		t.Errorf("%+v", s)
	}
	b.ask("longer than the bound", make([]int, 40))
	if s := b.Stats(); s.Waiting != 1 || s.Kept != 40 {
		t.Errorf("%+v", s)
	}
	b.apply(stored(0, abcdef, 11, 12, 13))
	b.resident("longer than the bound", 0)
	b.ask("r", abcdef)
	b.resident("r", 6)
	if s := b.Stats(); s.Waiting+s.Kept != 0 || s.Requests != 2 {
		t.Errorf("%+v", s)
	}
}

// TestWaitingRequestsMakeWay: requests that waited for the block size do not take the place of the blocks that show it.
func TestWaitingRequestsMakeWay(t *testing.T) {
	b := newBench(t, residency.Config{MaxBlocks: 100})
	for i := range 100 {
		b.ask(fmt.Sprint("r", i), []int{i, 1, 2, 3, 4, 5})
	}
	b.apply(stored(0, []int{99, 1, 2, 3, 4, 5}, 11, 12, 13))
	b.resident("r99", 6)
	if s := b.Stats(); !s.Complete || s.Overflow > 0 || s.Requests+int(s.Forgotten) != 100 {
		t.Errorf("%+v", s)
	}
}

func TestOnlyFullAttentionOfGroupZero(t *testing.T) {
	window := stored(0, abcdef, 11, 12, 13)
	window.Group = 1
	gone := removed(11)
	gone.Group = 1
	b := newBench(t, residency.Config{})
	b.ask("r", abcdef)
	b.apply(stored(0, abcdef[:2], 11), window, gone, gone)
	b.resident("r", 2)
	if s := b.Stats(); s.Foreign != 5 || !s.Complete || s.Unknown != 0 {
		t.Errorf("%+v", s)
	}
	b.apply(kvevents.Event{Kind: kvevents.Cleared})
	state := stored(0, abcdef, 21, 22, 23)
	state.Spec = "mamba"
	b.apply(state, removed(21))
	if s := b.Stats(); s.Complete || s.Inconsistent {
		t.Errorf("group 0 holds states: %+v", s)
	}
	full := stored(0, abcdef, 31, 32, 33)
	full.Spec = "full_attention"
	b.apply(full)
	if got := b.Prefix(abcdef, residency.Key{}); got != 6 {
		t.Errorf("full attention: %d", got)
	}
}

// TestTokensThatCannotBeCut: only the names are known then.
func TestTokensThatCannotBeCut(t *testing.T) {
	b := newBench(t, residency.Config{})
	b.ask("r", abcdef)
	b.apply(stored(0, abcdef[:2], 10), removed(10))
	b.apply(stored(0, abcdef[:5], 11, 12, 13), stored(0, nil, 14))
	b.resident("r", 0)
	b.apply(stored(0, abcdef[:2], 11)) // a second copy, with its tokens
	b.resident("r", 2)
	b.apply(removed(11))
	b.resident("r", 2)
	b.apply(removed(11, 12, 13, 14))
	b.resident("r", 0)
	if s := b.Stats(); s.HashesOnly != 4 || s.Unknown != 0 {
		t.Errorf("%+v", s)
	}
}

func TestPromptShorterThanABlock(t *testing.T) {
	b := newBench(t, residency.Config{Unseen: 1})
	b.apply(stored(0, abcdef, 11, 12, 13))
	b.ask("one token", []int{1})
	b.ask("none", nil)
	b.apply(removed(12, 13), kvevents.Event{Kind: kvevents.Cleared})
	b.resident("one token", 0)
	b.updated(residency.Update{Cleared: kvevents.EngineCleared})
	if s := b.Stats(); s.Mismatch {
		t.Errorf("%+v", s)
	}
}

func TestTokenizerOfAnotherModel(t *testing.T) {
	b := newBench(t, residency.Config{Unseen: 3})
	for i, id := range []string{"r1", "r2", "r3"} {
		if b.Stats().Mismatch {
			t.Errorf("after %d requests", i)
		}
		b.ask(id, []int{7, 7, i, 7})
		b.Served(id) // reported twice
		b.apply(stored(0, []int{1, 2, i, 4}, int64(10*i+11), int64(10*i+12)))
	}
	if s := b.Stats(); !s.Mismatch || s.Unseen != 3 {
		t.Errorf("%+v", s)
	}
	b.apply(stored(0, []int{7, 7}, 99)) // a block of all three
	if s := b.Stats(); s.Mismatch {
		t.Errorf("%+v", s)
	}
}

// TestNoEventsAreNoMismatch: an engine without events is no mismatch.
func TestNoEventsAreNoMismatch(t *testing.T) {
	b := newBench(t, residency.Config{Unseen: 1})
	b.ask("r", abcdef)
	if b.Stats().Mismatch {
		t.Error("without any event")
	}
	b.apply(stored(0, []int{9, 9}, 1))
	if !b.Stats().Mismatch {
		t.Error("blocks are stored, and none of the request's")
	}
}

// TestDeadStreamIsNoMismatch: answers while no events come say nothing about the tokens.
func TestDeadStreamIsNoMismatch(t *testing.T) {
	b := newBench(t, residency.Config{Unseen: 3})
	b.apply(stored(0, abcdef, 11, 12, 13))
	b.Complete(false)
	for i := range 20 {
		b.ask(fmt.Sprint("r", i), []int{7, i})
	}
	if s := b.Stats(); s.Mismatch || s.Unseen > 1 { // the first stands for the blocks that were stored before it
		t.Errorf("the stream was dead: %+v", s)
	}
	for i := range 2 { // it has a gap, and is not dead
		b.apply(stored(0, []int{9, i}, int64(100+i)))
		b.ask(fmt.Sprint("s", i), []int{8, i})
	}
	if s := b.Stats(); !s.Mismatch {
		t.Errorf("blocks are stored, and none of the requests': %+v", s)
	}
}

// TestWaitingThroughADeadStream: nor do those before the first event.
func TestWaitingThroughADeadStream(t *testing.T) {
	b := newBench(t, residency.Config{Unseen: 3})
	b.Complete(false)
	for i := range 20 {
		b.ask(fmt.Sprint("r", i), []int{7, i})
	}
	b.apply(stored(0, abcdef, 11, 12, 13))
	if s := b.Stats(); s.Mismatch || s.Unseen > 0 {
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

// TestUpdatesTellThePrompt: who counts in other tokens needs the engine's number of them.
func TestUpdatesTellThePrompt(t *testing.T) {
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
