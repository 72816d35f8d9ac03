package extract_test

import (
	"regexp"
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
