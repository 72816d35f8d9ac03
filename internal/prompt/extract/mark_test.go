package extract_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/prompt/extract"
)

// FuzzMark compares with the expression that says the same.
func FuzzMark(f *testing.F) {
	for _, s := range []string{
		"a <Docs", "[12] x", "[12 <file>", "{\n \"a\"", "<<item", "[1", "{", "[]", "<fi<result", "{ \u00a0\"", "<paſſage", "<reſult",
	} {
		f.Add(s)
	}
	want := regexp.MustCompile(`(?i)<(doc|context|passage|reference|file|item|result)|\[[0-9]+\]|[{]\s*"`)
	f.Fuzz(func(t *testing.T, text string) {
		at := -1
		if m := want.FindStringIndex(text); m != nil {
			at = m[0]
		}
		if got := extract.Mark(text); got != at {
			t.Errorf("%q: %d, want %d", text, got, at)
		}
	})
}

func TestOverlaps(t *testing.T) {
	const text = "ab<documents><document>c</document><document>d</document></documents>ef"
	f, ok := extract.Find(text, extract.Options{})
	if !ok {
		t.Fatal("no documents")
	}
	first := strings.Index(text, "<document>")
	last := strings.LastIndex(text, "</document>") + len("</document>")
	for _, c := range []struct {
		from, to int
		want     bool
	}{
		{0, first, false},
		{0, first + 1, true},
		{first, first + 1, true},
		{last - 1, len(text), true},
		{last, len(text), false},
		{0, len(text), true},
		{first + 12, first + 12, true},
	} {
		if got := f.Overlaps(c.from, c.to); got != c.want {
			t.Errorf("%d to %d: %v", c.from, c.to, got)
		}
	}
}
