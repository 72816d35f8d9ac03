package repeat_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/repeat"
)

// One reference stands for all blocks in a row, where the earlier text has them in a row, too, and their numbers count on.
func TestMerged(t *testing.T) {
	a := strings.Split(file("a", 0, 90), "\n")
	part := func(from, to int) string { return strings.Join(a[from:to], "\n") }
	numbered := func(first, from, to int) string {
		var b strings.Builder
		for i, l := range a[from:to] {
			fmt.Fprintf(&b, "%6d|%s\n", first+i, l)
		}
		return strings.TrimSuffix(b.String(), "\n")
	}
	for name, c := range map[string]struct {
		before []string
		text   string
		most   int // references, if there are to be few
		few    bool
	}{
		"in a row":           {[]string{part(0, 90)}, "first\n" + part(0, 90) + "\nlast", 1, true},
		"a gap":              {[]string{part(0, 45) + "\n" + file("b", 0, 40) + "\n" + part(45, 90)}, part(0, 90), 3, false},
		"two texts":          {[]string{part(0, 45), part(45, 90)}, part(0, 90), 4, false},
		"numbers count on":   {[]string{part(0, 90)}, numbered(5, 0, 90), 1, true},
		"numbers do not":     {[]string{part(0, 90)}, numbered(5, 0, 45) + "\n" + numbered(70, 45, 90), 4, false},
		"numbers in the end": {[]string{part(0, 90)}, part(0, 45) + "\n" + numbered(70, 45, 90), 4, false},
	} {
		var texts []repeat.Text
		for i, b := range append(c.before, c.text) {
			x := tool(i, b)
			x.Merged = true
			texts = append(texts, x)
		}
		r := repeat.Replace(texts, 0)
		got := r.Texts[len(texts)-1]
		n := strings.Count(got, "see above ...]")
		if n == 0 || c.few && n > c.most || !c.few && n < 2 {
			t.Errorf("%s: %d references: %s", name, n, got)
		}
		for i := range texts {
			texts[i].Merged = false
		}
		apart := repeat.Replace(texts, 0)
		if r.BlocksDeduped < apart.BlocksDeduped || len(got) > len(apart.Texts[len(texts)-1]) {
			t.Errorf("%s: %d blocks, and %d one by one", name, r.BlocksDeduped, apart.BlocksDeduped)
		}
	}
}
