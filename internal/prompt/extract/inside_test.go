package extract_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/internal/prompt/extract"
)

// A place is inside if what is put there moves with a document.
func TestInside(t *testing.T) {
	for text, mode := range map[string]extract.Mode{
		"p <documents>\n<document>a</document>\n<document>b</document>\n</documents> s": extract.Auto,
		"p\n[1] one\n[2] two\n[3] three":                                                extract.Auto,
		"one\n---\ntwo\n---\n three":                                                    extract.Separator,
		`{"results": ["a", "b"], "n": "x"}`:                                             extract.Auto,
	} {
		f, ok := extract.Find(text, extract.Options{Mode: mode})
		if !ok {
			t.Fatal(text)
		}
		for at := 1; at < len(text); at++ {
			in := false
			for i := range f.Docs {
				item := f.Item(i)
				for from := 0; from+len(item) <= len(text); from++ {
					in = in || text[from:from+len(item)] == item && from < at && at <= from+len(item)
				}
			}
			if f.Inside(at) != in {
				t.Errorf("%q: place %d (%q): %v, want %v", text, at, text[at:], f.Inside(at), in)
			}
		}
	}
}

// What is asked of a text as it is written keeps its layout.
func TestAsWritten(t *testing.T) {
	f, _ := extract.Find(`{"results":[{"a":1},{"b":2}]}`, extract.Options{})
	if !f.Plain() || f.AsWritten().Plain() {
		t.Error("plain is not as it should be")
	}
	if got, want := f.AsWritten().Collapse("x"), `{"results":["x"]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
