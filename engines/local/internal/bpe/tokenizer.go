package bpe

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/unicode/norm"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// role is what an id is for.
type role uint8

const (
	unused  role = iota
	normal       // made by merges
	single       // a byte by its number, like "<0x0A>"
	user         // a name that is text too, like "<think>"
	control      // a name that is no text, like "<|im_end|>"
)

// Tokenizer encodes and decodes with one vocabulary. It is safe for concurrent use.
type Tokenizer struct {
	text   []string // the bytes of each id
	roles  []role
	ids    map[string]int32 // normal tokens by their bytes
	bytes  [256]int32       // the token of each byte, -1: none
	merges map[uint64]merge
	names  specials
	split  Splitter
	// pieces is what only a vocabulary of SentencePiece has, nil: the vocabulary is byte-level.
	pieces *pieces
	// whole: a word that is a token is that token, whatever the merges would make of it.
	whole bool
	// compose: text is brought into Unicode's composed form first.
	compose bool
}

var _ contextpilot.Tokenizer = (*Tokenizer)(nil)

// Encode returns the tokens of text. If special is set, names of special tokens in text ("<|im_end|>") become these
// tokens; otherwise, which is right for what users and documents say, they are ordinary text. No token is added at the
// beginning or end.
//
// Each byte that is no UTF-8 counts as U+FFFD, as in encoding/json. Bytes that the vocabulary has no token for are left
// out, as the reference does; see [Tokenizer.Missing].
//
// With a vocabulary of SentencePiece, the text and what follows a special token begin with a space that is not there, if
// the vocabulary says so. Decode takes away the first.
func (t *Tokenizer) Encode(text string, special bool) []int32 {
	if text == "" {
		return nil
	}
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	e := encoder{t: t, out: make([]int32, 0, len(text)/3+4)}
	for special && text != "" {
		from, to, id := t.names.next(text)
		if from < 0 {
			break
		}
		e.ordinary(text[:from])
		e.out = append(e.out, id)
		text = text[to:]
	}
	e.ordinary(text)
	return e.out
}

// Count returns the number of tokens of text, as Encode(text, false) gives them.
func (t *Tokenizer) Count(text string) int { return len(t.Encode(text, false)) }

// Vocab returns the number of ids: they are 0 … Vocab()-1, and some may be unused.
func (t *Tokenizer) Vocab() int { return len(t.text) }

// ID returns the id of a special token, by its name, for example "<|im_end|>".
func (t *Tokenizer) ID(name string) (int32, bool) {
	id, ok := t.names.ids[name]
	return id, ok
}

// Bytes returns the bytes of a token, or the name of a special one; "" for an unknown id. It may be a part of a
// character.
func (t *Tokenizer) Bytes(id int32) string {
	if id < 0 || int(id) >= len(t.text) {
		return ""
	}
	return t.text[id]
}

// Special reports whether an id is a special token that is no text, like "<|im_end|>".
func (t *Tokenizer) Special(id int32) bool {
	return id >= 0 && int(id) < len(t.roles) && t.roles[id] == control
}

// SentencePiece reports whether the vocabulary is one of SentencePiece.
func (t *Tokenizer) SentencePiece() bool { return t.pieces != nil }

// Splitter returns what cuts text into words, 0 if nothing does: with a vocabulary of SentencePiece.
func (t *Tokenizer) Splitter() Splitter { return t.split }

// Missing returns the bytes that have no token, sorted: text with them loses something when it is encoded.
func (t *Tokenizer) Missing() []byte {
	var missing []byte
	for b, id := range t.bytes {
		if id < 0 {
			missing = append(missing, byte(b))
		}
	}
	return missing
}

// encoder is one call of Encode.
type encoder struct {
	t       *Tokenizer
	out     []int32
	scratch scratch
}

// ordinary encodes text without special tokens.
func (e *encoder) ordinary(text string) {
	if e.t.pieces != nil {
		e.characters(text)
		return
	}
	if e.t.compose {
		text = norm.NFC.String(text)
	}
	e.t.split.words(text, e.word)
}

func (e *encoder) word(word string) {
	if e.t.whole {
		if id, ok := e.t.ids[word]; ok {
			e.out = append(e.out, id)
			return
		}
	}
	s := &e.scratch
	s.ids = s.ids[:0]
	for i := range len(word) {
		if id := e.t.bytes[word[i]]; id >= 0 {
			s.ids = append(s.ids, id)
		}
	}
	s.merge(e.t.merges)
	e.out = append(e.out, s.ids...)
}

// Decode returns the text of tokens: their bytes, with U+FFFD for bytes that are no UTF-8. Special tokens appear by
// their names if special is set, and not at all otherwise. Unknown ids are left out.
func (t *Tokenizer) Decode(ids []int32, special bool) string {
	raw := make([]byte, 0, 4*len(ids))
	for i, id := range ids {
		raw = append(raw, t.piece(id, special, i == 0)...)
	}
	if utf8.Valid(raw) {
		return string(raw)
	}
	text, rest := repair(raw)
	return text + end(rest)
}

// piece is what a token adds to a text. At its beginning, that is less the space that Encode put there.
func (t *Tokenizer) piece(id int32, special, first bool) string {
	if !special && t.Special(id) {
		return ""
	}
	if first && t.pieces != nil && t.pieces.prefix {
		return strings.TrimPrefix(t.Bytes(id), " ")
	}
	return t.Bytes(id)
}

// Stream returns a decoder for the tokens of one text, in their order; special is as in Decode.
func (t *Tokenizer) Stream(special bool) *Stream { return &Stream{t: t, special: special} }

// Continue returns a decoder for tokens that continue a text, without special tokens. A space at their beginning stays,
// which Decode may take away.
func (t *Tokenizer) Continue() *Stream { return &Stream{t: t, begun: true} }

// Stream decodes tokens one by one: what it returns, put together, is what Decode returns. It is for one goroutine.
type Stream struct {
	t       *Tokenizer
	special bool
	begun   bool // not at the beginning of a text
	held    []byte
}

// Next returns the text that a token completes. Bytes that may be the beginning of a character are held back, so the
// text is empty at times.
func (s *Stream) Next(id int32) string {
	piece := s.t.piece(id, s.special, !s.begun)
	s.begun = true
	if len(s.held) == 0 && utf8.ValidString(piece) {
		return piece
	}
	text, rest := repair(append(s.held, piece...))
	s.held = slices.Clone(rest)
	return text
}

// End returns what was held back, as U+FFFD, and makes the stream ready for another answer.
func (s *Stream) End() string {
	rest := s.held
	s.held, s.begun = nil, false
	return end(rest)
}

// specials finds the names of special tokens in text.
type specials struct {
	ids map[string]int32
	// lengths of the names that begin with a byte, longest first.
	lengths [256][]int
}

func newSpecials() specials { return specials{ids: map[string]int32{}} }

// add enters a name; the first id of a name counts.
func (s *specials) add(name string, id int32) {
	if _, known := s.ids[name]; known || name == "" {
		return
	}
	s.ids[name] = id
	lengths := &s.lengths[name[0]]
	if !slices.Contains(*lengths, len(name)) {
		*lengths = append(*lengths, len(name))
		slices.SortFunc(*lengths, func(a, b int) int { return b - a })
	}
}

// next returns the first name in text, of several that begin there the longest. from is -1 if there is none.
func (s *specials) next(text string) (from, to int, id int32) {
	for i := range len(text) {
		for _, n := range s.lengths[text[i]] {
			if n > len(text)-i {
				continue
			}
			if id, ok := s.ids[text[i:i+n]]; ok {
				return i, i + n, id
			}
		}
	}
	return -1, -1, -1
}

// repair returns raw with U+FFFD in the place of what is no UTF-8: one for every longest piece that could have begun a character, as the
// Unicode standard recommends. The beginning of a character at the very end is returned as rest.
func repair(raw []byte) (text string, rest []byte) {
	for i := len(raw) - 1; i >= max(0, len(raw)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(raw[i]) {
			if !utf8.FullRune(raw[i:]) {
				raw, rest = raw[:i], raw[i:]
			}
			break
		}
	}
	fixed, err := unicode.UTF8.NewDecoder().Bytes(raw)
	if err != nil {
		panic(err) // it has an answer for all bytes
	}
	return string(fixed), rest
}

// end returns what the beginning of a character at the end of a text stands for.
func end(rest []byte) string {
	if len(rest) == 0 {
		return ""
	}
	return string(utf8.RuneError)
}
