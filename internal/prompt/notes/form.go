package notes

import (
	"regexp"
	"strings"
	"unicode"
)

// only is one note, or several on one line, with a fence or without.
var only = regexp.MustCompile(`^\[(?:\.\.\. "|Documents "|Duplicate content — |All [0-9]+ documents )[^\n]*` +
	`(?:result, see above(?: \.\.\.|\.)|Refer to the earlier result above\.)\]$`)

// Only reports whether a text is nothing but notes as they are written here, fenced or not.
func Only(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "[") && only.MatchString(text)
}

// Form is what the notes of a template look like, such as "Please refer to [{label}] in the previous conversation.". The zero
// Form is no text's.
type Form struct {
	pieces []string // of the outline, in the order of a note
	first  phrase   // letters of a piece; none: every text is looked at
}

// FormOf returns the form of a template in which {list} stands for "[a] > [b]"; other placeholders stand for anything.
func FormOf(template, list string) Form {
	template = strings.ReplaceAll(template, "{"+list+"}", "[{}>[{}")
	var f Form
	for rest := template; rest != ""; {
		literal, behind, _ := strings.Cut(rest, "{")
		if piece := outline(literal, false); piece != "" {
			f.pieces = append(f.pieces, piece)
		}
		_, rest, _ = strings.Cut(behind, "}")
	}
	// One document is no list, and a template that says nothing else is known by its list only.
	f.pieces = withoutList(f.pieces)
	for _, p := range f.pieces {
		if letters := strings.Trim(p, "[>"); len(letters) > len(f.first.letters) && len(letters) == len(strings.Map(alphabet, letters)) {
			f.first = newPhrase(letters)
		}
	}
	return f
}

// withoutList leaves the part of a list from the second label on out, if there is more to know a note by.
func withoutList(pieces []string) []string {
	var out []string
	for _, p := range pieces {
		if p = strings.TrimPrefix(p, ">["); p != "" && p != "[" {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return pieces
	}
	return out
}

func alphabet(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return r
	}
	return -1
}

// In reports whether a text has the form: all that the template says, in its order, whatever stands between.
func (f Form) In(text string) bool {
	if len(f.pieces) == 0 || f.first.letters != "" && !f.first.mayBeIn(text) {
		return false
	}
	if follow(outline(text, false), f.pieces) {
		return true
	}
	return strings.IndexByte(text, '\\') >= 0 && follow(outline(text, true), f.pieces)
}

// follow reports whether pieces stand in a text one behind the other.
func follow(text string, pieces []string) bool {
	for _, p := range pieces {
		_, behind, found := strings.Cut(text, p)
		if !found {
			return false
		}
		text = behind
	}
	return true
}

// outline returns what counts of a text: its letters in lower case, and the marks of lists. plain says how what may be an escape
// is read.
func outline(text string, plain bool) string {
	var b strings.Builder
	b.Grow(len(text))
	for at := 0; at < len(text); {
		r, maybe, next := read(text, at)
		at = next
		r = narrow(r)
		switch {
		case maybe && !plain:
		case r == '[' || r == '>', r == '［':
			b.WriteRune(min(r, '['))
		case isLetter(r):
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}
