package excerpt_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/prompt/excerpt"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// An excerpt has the sentences that have most of the question's words.
func TestExcerpt(t *testing.T) {
	const text = "The port is Oslo. The captain is Ann Lee. It left in May.\nIts cargo is salt, e.g. 3.5 tons of it!"
	for _, c := range []struct {
		question string
		limit    int
		want     string
	}{
		{"Who is the captain?", 8, "The captain is Ann Lee."},
		{"What is the cargo?", 18, "Its cargo is salt, e.g. 3.5 tons of it!"},
		{"Hm?", 6, "The port is Oslo."},
		{"Who is the captain, and when did it leave the port?", 12, "The port is Oslo. The captain is Ann Lee."},
		{"", 2, "The port"},
		{"Hm?", 100, text},
		{"Hm?", 0, ""},
	} {
		if got := excerpt.Of(text, c.question, c.limit, tokens.Count); got != c.want {
			t.Errorf("%q within %d tokens: %q, want %q", c.question, c.limit, got, c.want)
		}
	}
}

// An excerpt stands in its text, and is no longer than it may be.
func TestAnyExcerpt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"Oslo", "is", ".", " ", "\n", "!", "。", "é", "\xff", "wordswithoutspaces"})
		text := strings.Join(rapid.SliceOf(part).Draw(t, "text"), "")
		question := rapid.SampledFrom([]string{"", "is Oslo", "é"}).Draw(t, "question")
		limit := rapid.IntRange(0, 20).Draw(t, "limit")
		got := excerpt.Of(text, question, limit, tokens.Count)
		if !strings.Contains(text, got) || tokens.Count(got) > limit {
			t.Fatalf("%q of %q within %d", got, text, limit)
		}
	})
}

// A text that is no UTF-8 is cut somewhere.
func TestExcerptOfBytes(t *testing.T) {
	text := strings.Repeat("\x80", 40_000)
	if got := excerpt.Of(text, "", 5, tokens.Count); !strings.HasPrefix(text, got) {
		t.Errorf("%d bytes", len(got))
	}
}
