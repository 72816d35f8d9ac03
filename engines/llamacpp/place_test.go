package llamacpp

import "testing"

// numbers returns n tokens from the given one on.
func numbers(from, n int) []token {
	out := make([]token, n)
	for i := range out {
		out[i] = token(from + i)
	}
	return out
}

// held is a slot with these tokens, released at a time.
func held(tokens []token, used uint64) slot {
	return slot{tokens: tokens, length: len(tokens), used: used}
}

// Where a pinned prompt goes: to the oldest slot, unless what another one saves is worth more than what it would lose.
func TestPlace(t *testing.T) {
	prompt := numbers(0, 100)
	beginning := func(n, length int) []token { return append(numbers(0, n), numbers(1000, length-n)...) }
	chats := func(slots int) *habits { // in which every prompt goes on from the slot released last
		h := &habits{wentOn: make([]float64, slots)}
		h.wentOn[0] = 1
		return h
	}
	busy := &lease{}
	for _, test := range []struct {
		name   string
		slots  []slot
		habits *habits
		want   int
	}{
		{"fresh: as the server, the last", []slot{{}, {}, {}}, &habits{}, 2},
		{"of empty ones the oldest", []slot{{used: 1}, {used: 2}}, &habits{}, 0},
		{"the oldest", []slot{held(numbers(500, 50), 3), held(numbers(600, 50), 1), held(numbers(700, 50), 2)}, &habits{}, 1},
		{"its own conversation", []slot{held(prompt[:60], 3), held(numbers(600, 50), 1)}, chats(2), 0},
		{"a fifth, and little is lost", []slot{held(beginning(20, 100), 3), held(numbers(600, 50), 1)}, &habits{}, 0},
		{"a fifth, of a conversation that goes on", []slot{held(beginning(20, 100), 3), held(numbers(600, 50), 1)}, chats(2), 1},
		{
			"a fifth, of one too old to go on",
			[]slot{held(numbers(700, 50), 9), held(beginning(20, 100), 3), held(numbers(600, 50), 1)},
			chats(3), 1,
		},
		{"a few words more than the oldest has", []slot{held(beginning(12, 100), 3), held(beginning(10, 100), 1)}, &habits{}, 1},
		{
			"busy",
			[]slot{{tokens: prompt[:60], length: 60, used: 3, lease: busy}, held(numbers(600, 50), 2), held(numbers(700, 50), 1)},
			&habits{}, 2,
		},
		{"all busy", []slot{{lease: busy}}, &habits{}, -1},
	} {
		if got := test.habits.place(test.slots, prompt); got != test.want {
			t.Errorf("%s: slot %d, want %d", test.name, got, test.want)
		}
	}
}

// What slots are worth is learnt from prompts that go on, by how many slots were released after theirs.
func TestLearn(t *testing.T) {
	slots := []slot{held(numbers(0, 50), 3), held(numbers(100, 50), 2), held(numbers(200, 50), 1)}
	var h habits
	h.learn(slots, numbers(300, 80))
	if got := h.keep(0); got != leastKeep {
		t.Errorf("after a prompt that goes on from nothing: %g", got)
	}
	for range 500 {
		h.learn(slots, numbers(100, 80)) // from the second youngest
	}
	if young, same, old := h.keep(0), h.keep(1), h.keep(2); young < 0.99 || young != same || old != leastKeep {
		t.Errorf("worth %g, %g and %g, want 1, 1 and %g", young, same, old, leastKeep)
	}
	for range 500 {
		h.learn(slots, append(numbers(100, 20), numbers(900, 60)...)) // has a part of it
	}
	if got := h.keep(0); got != leastKeep {
		t.Errorf("after prompts that do not go on: %g", got)
	}
}

// A server that is left to choose, or whose slots are emptied, is followed by its own rule.
func TestOwnRule(t *testing.T) {
	slots := []slot{held(append(numbers(0, 20), numbers(1000, 80)...), 2), held(numbers(600, 50), 1)}
	chats := habits{wentOn: []float64{1, 0}}
	for want, b := range map[int]*book{
		1: {pins: true, similarity: 0.1, habits: chats},
		0: {similarity: 0.1, habits: chats},
	} {
		if got := b.choose(slots, numbers(0, 100)); got != want {
			t.Errorf("pinned %v: slot %d, want %d", b.pins, got, want)
		}
	}
	b := &book{pins: true, clears: true, similarity: 0.1, habits: chats}
	if got := b.choose(slots, numbers(0, 100)); got != 0 {
		t.Errorf("of a server that empties idle slots: slot %d, want 0", got)
	}
}
