package bleve

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2/analysis"
)

// minSnippet is the smallest length of a snippet that can hold a few words.
const minSnippet = 32

// Span is a range of bytes.
type Span struct{ Start, End int }

// Snippet is the part of a text that shows best why it was found.
type Snippet struct {
	Text string
	// Start is where Text begins in the whole text, in bytes.
	Start int
	// Matches are the words of Text that match the question, in order.
	Matches []Span
}

// Snippet returns the passage of at most limit bytes of text (at least 32) in which the most different words of the query
// stand, and of those with equally many the first; without any it is the text's beginning. It is cut between words. The
// text may be any, its words are compared as the index's default analyzer does it.
//
// Use it to show a result to people. What goes to a model should be the block as it is: a passage that depends on the
// question is another text each time, and no engine has its prefix.
func (x *Index) Snippet(text, query string, limit int) (Snippet, error) {
	if limit < minSnippet {
		return Snippet{}, fmt.Errorf("bleve: snippet: limit = %d, want at least %d", limit, minSnippet)
	}
	a := x.core.analyzers[x.opts.Analyzer]
	wanted := map[string]bool{}
	for _, t := range a.Analyze([]byte(trimQuery(query))) {
		wanted[string(t.Term)] = true
	}
	var matches []*analysis.Token
	for _, t := range a.Analyze([]byte(text)) {
		if wanted[string(t.Term)] && t.Start < t.End && t.End <= len(text) {
			matches = append(matches, t)
		}
	}
	first, last := densest(matches, limit)
	out := window(text, matches, first, last, limit)
	for _, m := range matches {
		if s := (Span{m.Start - out.Start, m.End - out.Start}); s.Start >= 0 && s.End <= len(out.Text) {
			out.Matches = append(out.Matches, s)
		}
	}
	return out, nil
}

// densest returns the run of matches within limit bytes that has the most different terms, as [first, last]; -1, -1 if
// there is none.
func densest(matches []*analysis.Token, limit int) (first, last int) {
	first, last = -1, -1
	count := map[string]int{}
	best, from := 0, 0
	for to, m := range matches {
		count[string(m.Term)]++
		for from < to && m.End-matches[from].Start > limit {
			if term := string(matches[from].Term); count[term] == 1 {
				delete(count, term)
			} else {
				count[term]--
			}
			from++
		}
		if len(count) > best && m.End-matches[from].Start <= limit {
			best, first, last = len(count), from, to
		}
	}
	return first, last
}

// window cuts the text around the run of matches.
func window(text string, matches []*analysis.Token, first, last, limit int) Snippet {
	if len(text) <= limit {
		return Snippet{Text: text}
	}
	start, end := 0, limit
	if first >= 0 {
		room := limit - (matches[last].End - matches[first].Start)
		start = max(matches[first].Start-room/2, 0)
		end = min(start+limit, len(text))
		start = max(end-limit, 0)
		if line := strings.LastIndexByte(text[start:matches[first].Start], '\n'); line >= 0 { // better from there on
			start += line + 1
			end = min(start+limit, len(text))
		} else {
			start = nextWord(text, start, matches[first].Start)
		}
		end = lastWord(text, end, matches[last].End)
	} else {
		end = lastWord(text, end, 0)
	}
	cut := text[start:end]
	trimmed := strings.TrimLeftFunc(cut, unicode.IsSpace)
	return Snippet{Text: strings.TrimRightFunc(trimmed, unicode.IsSpace), Start: start + len(cut) - len(trimmed)}
}

// nextWord returns the first place from at on, up to limit, where a word begins.
func nextWord(text string, at, limit int) int {
	for i := at; i < limit; i++ {
		if i == 0 || isSpace(text[i-1]) {
			return i
		}
	}
	for at < limit && !utf8.RuneStart(text[at]) {
		at++
	}
	return at
}

// lastWord returns the last place up to at, down to limit, where a word ends.
func lastWord(text string, at, limit int) int {
	for i := at; i > limit; i-- {
		if i == len(text) || isSpace(text[i]) {
			return i
		}
	}
	for at > limit && at < len(text) && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\t' }
