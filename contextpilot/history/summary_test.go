package history

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A summary loses its end: whole lines, whole words, or characters where there are neither.
func TestShorten(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"short":     {"All of it.\n\n", "All of it.\n\n"},
		"lines":     {"- a bee\n- the cow\n- one dog and its bone", "- a bee\n- the cow\n\n"},
		"words":     {"one two three four five six seven", "one two three four\n\n"},
		"no spaces": {strings.Repeat("总结", 20), strings.Repeat("总结", 4) + "\n\n"},
		"one word":  {strings.Repeat("x", 90), strings.Repeat("x", 22) + "\n\n"},
	} {
		count := func(s string) int { return utf8.RuneCountInString(s) }
		limit := 24
		if name == "no spaces" {
			limit = 10
		}
		if got := shorten(c.text, limit, count); got != c.want || count(got) > limit {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := shorten("some words", 1, func(s string) int { return len(s) }); got != "" {
		t.Errorf("no room: %q", got)
	}
}
