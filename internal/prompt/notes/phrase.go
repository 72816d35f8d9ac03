package notes

import "strings"

// phrase is a row of letters, with whatever between them.
type phrase struct {
	letters string
	rare    int // the place of the one that texts have least
}

// byFrequency has the letters of English, the rarest first.
const byFrequency = "zqxjkvbpygwfmcudlhrsinoate"

func newPhrase(letters string) phrase {
	p := phrase{letters: letters}
	for i := range len(letters) {
		if strings.IndexByte(byFrequency, letters[i]) < strings.IndexByte(byFrequency, letters[p.rare]) {
			p.rare = i
		}
	}
	return p
}

// mayBeIn reports whether a text may have the phrase. It looks at the surroundings of the rarest letter only, since nearly all
// texts do not have it.
func (p phrase) mayBeIn(text string) bool {
	if len(text) < len(p.letters) {
		return false
	}
	low, escaped := p.letters[p.rare], strings.IndexByte(text, '\\') >= 0
	return p.around(text, low, escaped) || p.around(text, low-'a'+'A', escaped) || unusual(text)
}

// around looks for the phrase around each place of one of its letters.
func (p phrase) around(text string, rare byte, escaped bool) bool {
	last := byte(0)
	if p.rare > 0 {
		last = p.letters[p.rare-1]
	}
	for at := 0; ; at++ {
		i := strings.IndexByte(text[at:], rare)
		if i < 0 {
			return false
		}
		at += i
		if !escaped && at > 0 && last != 0 {
			if b := lower(text[at-1]); b != 0 && b != last {
				continue // nearly always
			}
		}
		if p.before(text, at, escaped) && p.behind(text, at+1) {
			return true
		}
	}
}

// before reports whether what stands before a place may be the beginning of the phrase.
func (p phrase) before(text string, at int, escaped bool) bool {
	for want := p.rare - 1; want >= 0; want-- {
		b := byte(0)
		for b == 0 {
			if at--; at < 0 {
				return false
			}
			if text[at] >= 0x80 {
				return true // not looked at here
			}
			b = lower(text[at])
			if escaped && b == p.letters[want] && at > 0 && text[at-1] == '\\' {
				return true // it may be a letter or white space
			}
			if b != 0 && b != p.letters[want] {
				switch {
				case !escaped:
					return false
				case escapes(text, at):
					return true
				case at > 0 && text[at-1] == '\\' && strings.IndexByte("ntrbf", text[at]) >= 0:
					b = 0
				default:
					return false
				}
			}
		}
	}
	return true
}

// behind reports whether what stands from a place on may be the rest of the phrase.
func (p phrase) behind(text string, at int) bool {
	for want := p.rare + 1; want < len(p.letters); {
		switch {
		case at == len(text):
			return true // it may go on in another text
		case text[at] >= 0x80 || text[at] == '\\':
			return true
		}
		b := lower(text[at])
		at++
		if b == 0 {
			continue
		}
		if b != p.letters[want] {
			return false
		}
		want++
	}
	return true
}

// escapes reports whether a letter may belong to an escape such as \u200e.
func escapes(text string, at int) bool {
	for i := at - 1; i >= max(0, at-5); i-- {
		if text[i] == '\\' {
			return text[i+1] == 'u' || text[i+1] == 'x'
		}
	}
	return false
}

// lower returns a letter in lower case, 0 for what is no letter.
func lower(b byte) byte {
	if b |= 0x20; b >= 'a' && b <= 'z' {
		return b
	}
	return 0
}

// unusual reports whether a text has letters that are written as escapes, or wide ones.
func unusual(text string) bool {
	for at := 0; ; at++ {
		i := strings.IndexByte(text[at:], '\\')
		if i < 0 {
			break
		}
		at += i
		if at+1 < len(text) && (text[at+1] == 'u' || text[at+1] == 'x') {
			r, _, _ := read(text, at)
			if _, ok := letter(r); ok && r != '\\' && (r < 0x80 || narrow(r) != r) {
				return true
			}
		}
	}
	for at := 0; ; at++ {
		i := strings.IndexByte(text[at:], 0xef)
		if i < 0 {
			return false
		}
		at += i
		if r, _, _ := read(text, at); narrow(r) != r {
			return true
		}
	}
}
