package memory_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/memory"
)

// word is a word that has no two letters in a row with those of other numbers in common but for few.
func word(i int) string {
	return strings.Repeat(string(rune('b'+i/20)), 3) + strings.Repeat(string(rune('b'+i%20)), 3)
}

// The memories of a conversation have bounds, and begin anew beyond them.
func TestKeptBounds(t *testing.T) {
	store := newStore(t, memory.Config{})
	var texts []string
	for i := range 100 {
		texts = append(texts, fmt.Sprintf("Fact number %s.", word(i)))
	}
	mustAdd(t, store, texts...)
	long := strings.Repeat("tea ", 1<<13)
	for i := range 4 {
		if _, err := store.Add(t.Context(), ana, said(fmt.Sprintf("Long text l%d: %s", i, long)),
			memory.AddOptions{Extractor: memory.Everything{}}); err != nil {
			t.Fatal(err)
		}
	}
	count := func(history string) int { return strings.Count(history, "Fact number ") }
	c := newTalk(t, nil, store, memory.WithK(1))
	for i := range 64 {
		if n := count(c.turn(word(i))); n != i+1 {
			t.Fatalf("turn %d shows %d memories", i, n)
		}
	}
	if n := count(c.turn(word(63))); n != 64 {
		t.Errorf("%d memories are shown, want the 64 that stood there", n)
	}
	if n := count(c.turn(word(64))); n != 1 {
		t.Errorf("beyond the bound %d memories are shown, want the best one", n)
	}
	tokens := newPilot(t).Tokenizer().Count("Fact number " + word(1) + ".")
	c = newTalk(t, nil, store, memory.WithK(1), memory.WithBudget(10*tokens))
	most := 0
	for i := range 30 {
		n := count(c.turn(word(i)))
		if n == 0 {
			t.Fatalf("turn %d shows nothing", i)
		}
		most = max(most, n)
	}
	if most < 2 || most > 10 {
		t.Errorf("with a budget for ten memories up to %d are shown", most)
	}
	c = newTalk(t, nil, store, memory.WithK(1))
	for i := range 4 { // two of them are 64 KiB
		if n := strings.Count(c.turn(fmt.Sprintf("l%d", i)), "Long text"); n != 1+i%2 {
			t.Errorf("turn %d shows %d long texts", i, n)
		}
	}
}

// A text that several scopes within the searched one have stands in a conversation once, and counts once among the k best.
func TestKeptTextOfSeveralScopes(t *testing.T) {
	store := newStore(t, memory.Config{})
	for _, run := range []string{"", "1", "2"} {
		if _, err := store.Add(t.Context(), memory.Scope{User: "ana", Run: run}, said("I am allergic to peanuts."),
			memory.AddOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	mustAdd(t, store, "Peanuts grow in the garden of my aunt.")
	c := newTalk(t, nil, store, memory.WithK(2))
	for _, input := range []string{"What of peanuts?", "And what of nuts and peanuts?", "And what?"} {
		has(t, c.turn(input), map[string]int{"I am allergic to peanuts.": 1, "Peanuts grow in the garden of my aunt.": 1})
	}
}

// All memories may be asked for.
func TestKeptAll(t *testing.T) {
	store := newStore(t, memory.Config{})
	mustAdd(t, store, "I am allergic to peanuts.", "I keep bees.")
	has(t, newTalk(t, nil, store, memory.WithK(math.MaxInt)).load("What of peanuts?"),
		map[string]int{"I am allergic to peanuts.": 1, "I keep bees.": 1})
}

// The same question asked again within a budget that is full leaves the prompt as it begins.
func TestKeptFullBudget(t *testing.T) {
	store := newStore(t, memory.Config{})
	facts, questions := fifty(t)
	mustAdd(t, store, facts...)
	c := newTalk(t, nil, store, memory.WithBudget(60))
	before := c.turn(questions[0])
	for range 5 {
		history := c.turn(questions[0])
		if !strings.HasPrefix(history, before) {
			t.Fatalf("the prompt began\n%s\nand begins\n%s", before, history)
		}
		before = history
	}
}
