package residency_test

import (
	"fmt"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
)

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
