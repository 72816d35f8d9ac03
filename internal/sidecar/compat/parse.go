package compat

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// kind is what a JSON value is.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindInt // a number without fraction and exponent
	kindFloat
	kindText
	kindList
	kindObject
)

// value is a JSON value and its text, which is kept because answers give clients' own documents back: not decoded and
// encoded again, but as they came.
type value struct {
	kind  kind
	raw   []byte
	items []value  // of a list, or a member's value by name
	names []string // of an object's members
}

// member returns the object's member of that name; of several the last, as Python's reader has it.
func (v value) member(name string) (value, bool) {
	for i, n := range slices.Backward(v.names) {
		if n == name {
			return v.items[i], true
		}
	}
	return value{}, false
}

// text returns what a string says. A lone surrogate is kept as three bytes that are not UTF-8, so that different strings
// stay different.
func (v value) text() string {
	in := v.raw[1 : len(v.raw)-1]
	if bytes.IndexByte(in, '\\') < 0 {
		return string(in)
	}
	out := make([]byte, 0, len(in))
	for i := 0; i < len(in); i++ {
		if in[i] != '\\' {
			out = append(out, in[i])
			continue
		}
		i++
		switch in[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := hex4(in[i+1:])
			i += 4
			if utf16.IsSurrogate(r) && i+6 < len(in) && in[i+1] == '\\' && in[i+2] == 'u' {
				if both := utf16.DecodeRune(r, hex4(in[i+3:])); both != utf8.RuneError {
					r = both
					i += 6
				}
			}
			if utf16.IsSurrogate(r) {
				out = append(out, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
				continue
			}
			out = utf8.AppendRune(out, r)
		default: // quote, slash, backslash
			out = append(out, in[i])
		}
	}
	return string(out)
}

// hex4 reads four hexadecimal digits; -1 if they are none.
func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// syntaxError is a text that is no JSON, in the words of Python's reader. At counts characters.
type syntaxError struct {
	at  int
	msg string
}

func (e *syntaxError) Error() string { return e.msg + " at " + strconv.Itoa(e.at) }

// maxDepth is how deep lists and objects may stand in each other; what we read needs four levels.
const maxDepth = 200

// parser reads JSON in one pass. The standard library's says less about errors, and would cost a second pass to keep the
// text of values.
type parser struct {
	b     []byte
	i     int
	depth int
}

// parse reads a text of one JSON value. The error is a *syntaxError.
func parse(b []byte) (value, error) {
	b = bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF"))
	p := &parser{b: b}
	p.space()
	v, err := p.value()
	if err != nil {
		return value{}, err
	}
	if p.space(); p.i < len(b) {
		return value{}, p.fail(p.i, "Extra data")
	}
	return v, nil
}

func (p *parser) fail(at int, msg string) error {
	return &syntaxError{utf8.RuneCount(p.b[:at]), msg}
}

func (p *parser) space() {
	for p.i < len(p.b) && (p.b[p.i] == ' ' || p.b[p.i] == '\t' || p.b[p.i] == '\n' || p.b[p.i] == '\r') {
		p.i++
	}
}

// peek returns the next byte, 0 at the end.
func (p *parser) peek() byte {
	if p.i < len(p.b) {
		return p.b[p.i]
	}
	return 0
}

func (p *parser) value() (value, error) {
	start := p.i
	switch c := p.peek(); {
	case c == '"':
		if err := p.str(); err != nil {
			return value{}, err
		}
		return value{kind: kindText, raw: p.b[start:p.i]}, nil
	case c == '[' || c == '{':
		if p.depth++; p.depth > maxDepth {
			return value{}, p.fail(start, "Too many levels")
		}
		v, err := p.compound(c)
		p.depth--
		v.raw = p.b[start:p.i]
		return v, err
	case c == '-' || c >= '0' && c <= '9':
		if k, ok := p.number(); ok {
			return value{kind: k, raw: p.b[start:p.i]}, nil
		}
	}
	for _, w := range []struct {
		text string
		kind kind
	}{{"null", kindNull}, {"true", kindBool}, {"false", kindBool}} {
		if bytes.HasPrefix(p.b[start:], []byte(w.text)) {
			p.i += len(w.text)
			return value{kind: w.kind, raw: p.b[start:p.i]}, nil
		}
	}
	return value{}, p.fail(start, "Expecting value")
}

// compound reads a list or an object, the opening bracket being next.
func (p *parser) compound(open byte) (value, error) {
	v := value{kind: kindList}
	end := byte(']')
	if open == '{' {
		v.kind, end = kindObject, '}'
	}
	p.i++
	p.space()
	if p.peek() == end {
		p.i++
		return v, nil
	}
	for {
		if v.kind == kindObject {
			if err := p.name(&v); err != nil {
				return v, err
			}
		}
		item, err := p.value()
		if err != nil {
			return v, err
		}
		v.items = append(v.items, item)
		p.space()
		switch p.peek() {
		case end:
			p.i++
			return v, nil
		case ',':
			p.i++
			p.space()
		default:
			return v, p.fail(p.i, "Expecting ',' delimiter")
		}
	}
}

func (p *parser) name(v *value) error {
	if p.peek() != '"' {
		return p.fail(p.i, "Expecting property name enclosed in double quotes")
	}
	start := p.i
	if err := p.str(); err != nil {
		return err
	}
	v.names = append(v.names, value{raw: p.b[start:p.i]}.text())
	p.space()
	if p.peek() != ':' {
		return p.fail(p.i, "Expecting ':' delimiter")
	}
	p.i++
	p.space()
	return nil
}

// str passes over a string, the opening quote being next.
func (p *parser) str() error {
	start := p.i
	for p.i++; p.i < len(p.b); p.i++ {
		switch c := p.b[p.i]; {
		case c == '"':
			p.i++
			return nil
		case c < ' ':
			return p.fail(p.i, "Invalid control character at")
		case c == '\\':
			p.i++
			switch e := p.peek(); {
			case p.i >= len(p.b):
				return p.fail(start, "Unterminated string starting at")
			case e == 'u':
				if hex4(p.b[p.i+1:]) < 0 {
					return p.fail(p.i, "Invalid \\uXXXX escape")
				}
				p.i += 4
			case bytes.IndexByte([]byte(`"\/bfnrt`), e) < 0:
				return p.fail(p.i-1, "Invalid \\escape")
			}
		}
	}
	return p.fail(start, "Unterminated string starting at")
}

// number passes over as much of a number as there is. It reports false and passes over nothing if there is none.
func (p *parser) number() (kind, bool) {
	start := p.i
	digits := func() bool {
		from := p.i
		for p.i < len(p.b) && p.b[p.i] >= '0' && p.b[p.i] <= '9' {
			p.i++
		}
		return p.i > from
	}
	if p.peek() == '-' {
		p.i++
	}
	if p.peek() == '0' {
		p.i++
	} else if !digits() {
		p.i = start
		return 0, false
	}
	k := kindInt
	if back := p.i; p.peek() == '.' {
		if p.i++; digits() {
			k = kindFloat
		} else {
			p.i = back
		}
	}
	if back := p.i; p.peek() == 'e' || p.peek() == 'E' {
		p.i++
		if p.peek() == '+' || p.peek() == '-' {
			p.i++
		}
		if digits() {
			k = kindFloat
		} else {
			p.i = back
		}
	}
	return k, true
}
