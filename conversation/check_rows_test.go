package conversation_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// lines returns the lines of a text, or of the member of JSON that has them.
func lines(text string) ([]string, map[string]any) {
	var object map[string]any
	if json.Unmarshal([]byte(text), &object) == nil {
		if content, ok := object["content"].(string); ok {
			delete(object, "content")
			return strings.Split(content, "\n"), object
		}
	}
	return strings.Split(text, "\n"), nil
}

// rows checks a text with notes in place of some of its lines.
func (c *checker) rows(i, j int) (rest string, ok bool) {
	s, a := c.sent[i].Texts[j].Value, c.arrived[i].Texts[j].Value
	was, beside := lines(s)
	now, alsoBeside := lines(a)
	if plain(s, fmt.Sprint(alsoBeside)) != fmt.Sprint(beside) {
		return "", false
	}
	var others []string
	for _, l := range now {
		if ofRows.MatchString(l) {
			l = "a note"
		}
		others = append(others, l)
	}
	var fits func(was, now []string) bool
	fits = func(was, now []string) bool {
		if len(now) == 0 || len(was) == 0 {
			return len(now) == len(was)
		}
		if plain(s, now[0]) == was[0] && fits(was[1:], now[1:]) {
			return true
		}
		note := ofRows.FindStringSubmatch(now[0])
		if note == nil {
			return false
		}
		for n := 1; n <= len(was); n++ {
			if (n == len(was) || len(now) == 1 || ofRows.MatchString(now[1]) || plain(s, now[1]) == was[n]) && c.stand(i, j, was[:n], note) &&
				fits(was[n:], now[1:]) {
				return true
			}
		}
		return false
	}
	return strings.Join(others, "\n"), fits(was, now)
}

// stand reports whether lines stand further up, where a note says. A note of one block says how they begin; a note of several says how
// their last line begins, too, and where both are, all that stands from the one to the other is what was sent.
func (c *checker) stand(i, j int, list, note []string) bool {
	want := strings.TrimSpace(withoutIDs(strings.Join(list, "\n")))
	list = strings.Split(want, "\n")
	found := false
	each := func(do func(there []string)) {
		c.above(i, j, func(m, n int) {
			x := c.sent[m].Texts[n]
			if x.Role < c.sent[i].Texts[j].Role || c.labelOf(m, n) != note[2] {
				return
			}
			there, _ := lines(plain(x.Value, c.arrived[m].Texts[n].Value))
			do(strings.Split(withoutIDs(strings.Join(there, "\n")), "\n"))
		})
	}
	if len(list) <= mostLines && begins(list[0], note[1]) {
		each(func(there []string) { found = found || strings.Contains(strings.Join(there, "\n"), want) })
	}
	for at, to := 0, `" to "`; !found; at += len(to) {
		k := strings.Index(note[1][at:], to)
		if k < 0 {
			break
		}
		at += k
		first, last := note[1][:at], note[1][at+len(to):]
		if !begins(list[0], first) || !begins(list[len(list)-1], last) {
			continue
		}
		others := false
		each(func(there []string) {
			for from := range there {
				if !begins(there[from], first) {
					continue
				}
				k := slices.IndexFunc(there[from+1:], func(line string) bool { return begins(line, first) || begins(line, last) })
				if k < 0 || !begins(there[from+1+k], last) {
					continue
				}
				is := strings.TrimSpace(strings.Join(there[from:from+k+2], "\n")) == want
				found, others = found || is, others || !is
			}
		})
		if found = found && !others; found {
			break
		}
	}
	return found
}

// mostLines is how many lines a block has.
const mostLines = 42

// begins reports whether a line begins with words of a note, and has no more of them if they are few.
func begins(line, words string) bool {
	line, words = string([]rune(strings.TrimSpace(line))), string([]rune(words)) // what is no UTF-8 is not quoted so
	short := utf8.RuneCountInString(words) < 80
	words = strings.TrimSpace(words)
	for _, l := range []string{line, unfenced(line)} {
		for _, w := range []string{words, quoted(words)} {
			if l == w || !short && strings.HasPrefix(l, w) {
				return true
			}
		}
	}
	return false
}
