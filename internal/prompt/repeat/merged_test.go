package repeat_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/prompt/repeat"
)

// One reference stands for blocks in a row, where the earlier text has them in a row, too, their numbers count on, and the first and the
// last line are enough to find them.
func TestMerged(t *testing.T) {
	all := file("a", 0, 90)
	a := strings.Split(all, "\n")
	part := func(from, to int) string { return strings.Join(a[from:to], "\n") }
	blocks := repeat.Blocks(all, 0)
	one, two := blocks[0].Lines, blocks[0].Lines+blocks[1].Lines
	again := part(0, one+3) + "\n" + a[one] + "\n" + part(one+3, 90)
	later := part(0, 64) + "\n" + a[one] + "\n" + part(64, 90)
	end := part(0, one+1) + "\n" + a[76] + "\n" + part(one+1, 90)
	for name, c := range map[string]struct {
		before []string
		text   string
		want   string // numbers of the first and the last lines that references show
	}{
		"in a row":         {[]string{all}, all, "000 018-076 077"},
		"behind others":    {[]string{file("b", 0, 9) + "\n" + all}, file("c", 0, 9) + "\n" + all, "018-076 077"},
		"a gap":            {[]string{part(0, 45) + "\n" + file("b", 0, 40) + "\n" + part(45, 90)}, all, "000 062-076 077"},
		"two texts":        {[]string{part(0, 45), part(45, 90)}, all, "000 062-076 077"},
		"numbers count on": {[]string{all}, numbered(all, 5, 1), "000 018-076 077"},
		"numbers do not":   {[]string{all}, numbered(part(0, two), 5, 1) + "\n" + numbered(part(two, 90), 70, 1), "000 018 058-076 077"},
		"some numbers":     {[]string{all}, part(0, two) + "\n" + numbered(part(two, 90), 70, 1), "000 018 058-076 077"},
		"white space":      {[]string{part(0, one) + "\n  " + part(one, 90)}, all, "000 018 058-076 077"},
		"the same space":   {[]string{part(0, one) + "\n  " + part(one, 90)}, part(0, one) + "\n  " + part(one, 90), "000 018-076 077"},
		"first line again": {[]string{again}, again, "000 018 057-076 077"},
		"first line later": {[]string{later}, later, "000 018-061 062-076 077"},
		"space in front":   {[]string{part(0, 62) + "\n  " + part(62, 90)}, all, "000 018-061 062 069-076 077"},
		"a part left out":  {[]string{all}, part(0, 62) + "\n" + part(72, 90), "000 018-061 072 077"},
		"last line again":  {[]string{end}, end, "000 018-071 072 077"},
		"ends a block":     {[]string{all, file("b", 0, 20) + "\n" + a[76] + "\n" + file("b", 20, 40)}, all, "000 018-071 072 077"},
		"is a text":        {[]string{all, a[76]}, all, "000 018-071 072 077"},
	} {
		var texts []repeat.Text
		for i, b := range append(c.before, c.text) {
			x := tool(i, b)
			x.Merged = true
			texts = append(texts, x)
		}
		r := repeat.Replace(texts, 0)
		got := r.Texts[len(texts)-1]
		var list []string
		for _, m := range reference.FindAllStringSubmatch(got, -1) {
			list = append(list, strings.Trim(m[1]+"-"+m[2], "-"))
		}
		if says := strings.Join(list, " "); says != c.want {
			t.Errorf("%s: %q, want %q", name, says, c.want)
		}
		for i := range texts {
			texts[i].Merged = false
		}
		apart := repeat.Replace(texts, 0)
		if r.BlocksDeduped != apart.BlocksDeduped || len(got) > len(apart.Texts[len(texts)-1]) {
			t.Errorf("%s: %d blocks, and %d one by one", name, r.BlocksDeduped, apart.BlocksDeduped)
		}
	}
}

var reference = regexp.MustCompile(`(?m)^\[\.\.\. "[ \d|]*line (\d+) [^"]*"(?: to "[ \d|]*line (\d+))?`)
