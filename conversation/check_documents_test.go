package conversation_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/internal/prompt/extract"
	"github.com/ragpilot/ragpilot/internal/prompt/markup"
)

// system checks a system text: its documents may have another order, and be fenced.
func (c *checker) system(i, j int) error {
	s, a := c.sent[i].Texts[j].Value, c.arrived[i].Texts[j].Value
	list := c.pieces(i, j)
	was, err := plain(s, a), error(nil)
	if len(list) == 1 { // where it is not sure which the documents are, all may be fenced
		if was != s {
			return fmt.Errorf("words of a system text were changed")
		}
		return nil
	}
	if a, was, err = c.withoutEcho(i, j, a, was); err != nil {
		return err
	}
	head, tail := list[0].text, list[len(list)-1].text
	if !strings.HasPrefix(a, head) || !strings.HasSuffix(a, tail) {
		return fmt.Errorf("words around the documents of a system text were changed")
	}
	if forged := forgedIn(a[len(head) : len(a)-len(tail)]); forged != "" {
		return fmt.Errorf("a note of a document of a system text was not fenced: %q", forged)
	}
	if was == s {
		return nil
	}
	for m := range c.sent[:i] {
		if c.sent[m].Role != conversation.System {
			return fmt.Errorf("documents were moved behind a history")
		}
	}
	used := make([]bool, len(list))
	var fits func(k int, left string) bool
	fits = func(k int, left string) bool {
		if k == len(list) {
			return left == ""
		}
		if !list[k].isDocument {
			return strings.HasPrefix(left, list[k].text) && fits(k+1, left[len(list[k].text):])
		}
		for n := range list {
			if list[n].isDocument && !used[n] && strings.HasPrefix(left, list[n].text) {
				used[n] = true
				if fits(k+1, left[len(list[n].text):]) {
					return true
				}
				used[n] = false
			}
		}
		return false
	}
	if !fits(0, was) {
		return fmt.Errorf("a system text has other documents")
	}
	return nil
}

// withoutEcho takes an echo out of a system text as it arrived, and as it was without fences. It is a part of the first document, stands
// behind the last one, and that document stands neither first nor last.
func (c *checker) withoutEcho(i, j int, a, was string) (string, string, error) {
	if strings.Contains(c.sent[i].Texts[j].Value, " again") {
		return a, was, nil
	}
	list := c.pieces(i, j)
	for r := range markup.All(a) {
		if !r.Echo {
			continue
		}
		echo := "\n" + strings.TrimSuffix(a[r.Start:r.End], "\n")
		var documents []string
		for _, p := range list {
			if p.isDocument {
				documents = append(documents, p.text)
			}
		}
		front := a[:r.Start-1]
		switch first := documents[0]; {
		case !strings.Contains(plain(first, first), r.Text):
			return a, was, fmt.Errorf("%q is shown once more and stands in no document", r.Text)
		case strings.Count(was, echo) != 1:
			return a, was, fmt.Errorf("an echo of %q is fenced, or stands there twice", r.Text)
		case !strings.HasSuffix(a, echo+list[len(list)-1].text):
			return a, was, fmt.Errorf("an echo of %q stands not behind the documents", r.Text)
		case strings.HasSuffix(front, first) || strings.HasPrefix(front, list[0].text+first):
			return a, was, fmt.Errorf("an echo of %q, which stands first or last", r.Text)
		}
		return strings.Replace(a, echo, "", 1), strings.Replace(was, echo, "", 1), nil
	}
	return a, was, nil
}

// solid returns a text without white space and commas: what parts documents goes with them.
func solid(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == ',' {
			return -1
		}
		return r
	}, text)
}

// documents checks a text with a note in place of some of its documents.
func (c *checker) documents(i, j int) (rest string, ok bool) {
	list := c.pieces(i, j)
	if len(list) == 1 {
		return "", false
	}
	// What is not ours may begin as a note does: it is looked at from each place on.
	a := c.arrived[i].Texts[j].Value
	for _, at := range ofBegun.FindAllStringIndex(a, -1) {
		if rest, ok := c.documentsFrom(i, j, at[0]); ok {
			return rest, true
		}
	}
	return c.documentsFrom(i, j, 0)
}

func (c *checker) documentsFrom(i, j, at int) (rest string, ok bool) {
	s, a := c.sent[i].Texts[j].Value, c.arrived[i].Texts[j].Value
	list := c.pieces(i, j)
	var found []string
	mark := func(note string) string {
		found = append(found, note)
		return "\x01" + strconv.Itoa(len(found)-1) + "\x01"
	}
	if strings.HasPrefix(strings.TrimSpace(s), "{") && json.Valid([]byte(s)) {
		if !json.Valid([]byte(a)) {
			return "", false
		}
		a = ofString.ReplaceAllStringFunc(a, func(quoted string) string {
			var words string
			if json.Unmarshal([]byte(quoted), &words) != nil || ofAllGroups.FindString(words) != words || words == "" {
				return quoted
			}
			return mark(words)
		})
	} else {
		a = a[:at] + ofAllGroups.ReplaceAllStringFunc(a[at:], mark)
	}
	for k, note := range found {
		left := a
		if c.sent[i].Texts[j].Role == conversation.Tool {
			left = plain(s, a)
		}
		var dropped []int
		place := "\x01" + strconv.Itoa(k) + "\x01"
		var fits func(n int, left string) bool
		fits = func(n int, left string) bool {
			if n == len(list) {
				return left == "" && len(dropped) > 0 && c.named(i, j, dropped, note)
			}
			d := &list[n]
			if text := solid(d.text); strings.HasPrefix(left, text) && fits(n+1, left[len(text):]) {
				return true
			}
			if !d.isDocument { // what parts documents goes with one of them
				return c.form.Mode == extract.Separator && strings.Trim(solid(d.text), "-") == "" && fits(n+1, left)
			}
			behind, ok := left, true
			if len(dropped) == 0 {
				stands := place
				if tag := regexp.MustCompile(`^<(\w+)`).FindStringSubmatch(d.text); tag != nil && !d.own && (c.form.Mode == "" ||
					c.form.Mode == extract.XMLTag) {
					stands = "<" + tag[1] + ">" + place + "</" + tag[1] + ">"
				}
				behind, ok = strings.CutPrefix(left, stands)
			}
			dropped = append(dropped, n)
			if ok && fits(n+1, behind) {
				return true
			}
			dropped = dropped[:len(dropped)-1]
			return false
		}
		if fits(0, solid(left)) {
			return strings.ReplaceAll(a, place, "\x00"), true
		}
	}
	return "", false
}

// candidate is a document that a note may stand for.
type candidate struct{ first, label string }

// named reports whether a note names documents that stand for those that were dropped, each by words that name nothing else.
func (c *checker) named(i, j int, dropped []int, note string) bool {
	var groups [][2]string
	for _, m := range ofDocuments.FindAllStringSubmatch(note, -1) {
		groups = append(groups, [2]string{quoted(m[1]), m[2]})
	}
	list := c.pieces(i, j)
	c.gone[[2]int{i, j}] = slices.Clone(dropped)
	first := make([]bool, len(groups))
	for k := range first {
		first[k] = true
	}
	var fits func(n int) bool
	fits = func(n int) bool {
		if n == len(dropped) {
			for k := range groups {
				if groups[k][0] != "" || first[k] {
					return false
				}
			}
			return true
		}
		for _, can := range c.candidates(i, j, &list[dropped[n]]) {
			for k := range groups {
				if groups[k][1] != can.label {
					continue
				}
				was, wasFirst := groups[k][0], first[k]
				rest := was
				if !wasFirst {
					var ok bool
					if rest, ok = strings.CutPrefix(rest, `", "`); !ok {
						continue
					}
				}
				words := []rune(unfenced(can.first))
				least := 35
				if quoted(note) != note {
					least = 27 // a fence word takes some of the 40 characters
				}
				for n60 := min(60, len(words)); n60 >= min(least, len(words)); n60-- {
					named := string(words[:n60])
					if n60 == len(words) {
						named = unfenced(can.first) // it may be no UTF-8
					}
					behind, ok := strings.CutPrefix(rest, named)
					if !ok || behind != "" && !strings.HasPrefix(behind, `", "`) {
						continue
					}
					groups[k][0], first[k] = behind, false
					if fits(n + 1) {
						return true
					}
					groups[k][0], first[k] = was, wasFirst
				}
			}
		}
		return false
	}
	return fits(0)
}

func (c *checker) candidates(i, j int, d *piece) []candidate {
	var out []candidate
	role := c.sent[i].Texts[j].Role
	c.above(i, j, func(m, n int) {
		x := c.sent[m].Texts[n]
		if x.Role < role {
			return
		}
		as := plain(x.Value, c.arrived[m].Texts[n].Value)
		for _, p := range c.pieces(m, n) {
			can := candidate{p.first, c.labelOf(m, n)}
			if p.isDocument && withoutIDs(p.says) == withoutIDs(d.says) && strings.Contains(as, p.text) && !slices.Contains(out, can) &&
				c.unique(i, j, &p, can.label) {
				out = append(out, can)
			}
		}
	})
	return out
}

// unique reports whether the words that name a document name no other.
func (c *checker) unique(i, j int, d *piece, label string) bool {
	if c.names {
		return true
	}
	same := true
	words := func(text string) string { r := []rune(text); return string(r[:min(len(r), 60)]) }
	look := func(m, n int) {
		if c.sent[m].Texts[n].Role == conversation.System && d.own {
			for r := range markup.Regions(c.sent[m].Texts[n].Value) {
				same = same && (r.Label != d.label || withoutIDs(r.Text) == withoutIDs(d.says))
			}
		}
		for k, p := range c.pieces(m, n) {
			if slices.Contains(c.gone[[2]int{m, n}], k) {
				continue
			}
			if p.isDocument && words(p.first) == words(d.first) && (p.own && d.own || c.labelOf(m, n) == label) &&
				withoutIDs(p.says) != withoutIDs(d.says) {
				same = false
			}
		}
	}
	c.above(i, j, look)
	look(i, j)
	return same
}
