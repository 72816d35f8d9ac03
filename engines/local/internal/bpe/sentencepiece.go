package bpe

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/engines/local/internal/gguf"
)

// Vocabularies of SentencePiece spell a space as U+2581. The characters of a text are tokens at first. Of neighbours
// whose texts together are a token, those merge first whose token has the highest score, of several the leftmost. What
// is no token then is written in tokens of single bytes.

// blank is how a space is spelled.
const blank = "\u2581"

// pieces is what a vocabulary of SentencePiece has besides tokens and merges.
type pieces struct {
	// prefix: text begins with a space that is not there.
	prefix bool
	// loose are characters that are no tokens but are merged into some. Their ids follow those of the tokens.
	loose []string
}

// maxPiece is the most bytes of a token that merges make; those of vocabularies in use have less than a hundred.
const maxPiece = 256

// sentencePiece reads a vocabulary of SentencePiece.
func sentencePiece(metadata map[string]gguf.Value) (*Tokenizer, error) {
	tokens, err := texts(metadata, keyTokens)
	if err != nil {
		return nil, err
	}
	scores := metadata[keyScores]
	if scores.Kind != gguf.Array || scores.Elem != gguf.Float32 {
		return nil, fmt.Errorf("key %q: not there, or no array of float32", keyScores)
	}
	if scores.Len != tokens.Len {
		return nil, fmt.Errorf("key %q: %d entries for %d tokens", keyScores, scores.Len, tokens.Len)
	}
	if _, ok := metadata[keyTypes]; !ok {
		return nil, fmt.Errorf("key %q: not there", keyTypes)
	}
	b := newBuilder(0, tokens.Len, 2*tokens.Len)
	b.t.pieces = &pieces{prefix: true}
	if v, ok := metadata[keyPrefix]; ok {
		if b.t.pieces.prefix, ok = v.Bool(); !ok {
			return nil, fmt.Errorf("key %q: %v, want bool", keyPrefix, v.Kind)
		}
	}
	if err := b.rolesOf(metadata); err != nil {
		return nil, err
	}
	if err := b.piecesOf(tokens); err != nil {
		return nil, fmt.Errorf("key %q: %w", keyTokens, err)
	}
	if err := b.score(tokens, scores); err != nil {
		return nil, fmt.Errorf("key %q: %w", keyScores, err)
	}
	return b.t, nil
}

// piecesOf enters the tokens, each by its role.
func (b *builder) piecesOf(tokens gguf.Value) error {
	t := b.t
	for i := range t.bytes {
		t.bytes[i] = -1
	}
	seen := make(map[string]int, tokens.Len)
	for i, raw := range tokens.Texts() {
		text := string(raw)
		if text == "" {
			t.roles[i] = unused
			continue
		}
		if first, twice := seen[text]; twice {
			return fmt.Errorf("token %d is %q, as token %d", i, text, first)
		}
		seen[text] = i
		switch r := t.roles[i]; r {
		case normal:
			if len(text) > maxPiece {
				return fmt.Errorf("token %d has %d bytes, more than %d", i, len(text), maxPiece)
			}
			t.text[i], t.ids[text] = strings.ReplaceAll(text, blank, " "), int32(i)
		case single:
			if !b.single(i, text) {
				return fmt.Errorf("token %d is %q, want a byte such as %q", i, text, byteName('\n'))
			}
		case control, user:
			b.name(i, text, r)
		}
	}
	return b.complete()
}

// single enters the token of a byte, or returns false if it is not spelled as one.
func (b *builder) single(id int, text string) bool {
	var value byte
	if len(text) != len("<0x00>") {
		return false
	}
	if _, err := fmt.Sscanf(text, "<0x%02X>", &value); err != nil || text != byteName(value) {
		return false
	}
	b.t.text[id], b.t.bytes[value] = string([]byte{value}), int32(id)
	return true
}

// complete is an error if there is text that no tokens can spell.
func (b *builder) complete() error {
	if missing := b.t.Missing(); missing != nil {
		return fmt.Errorf("no token for %d of 256 bytes, the first is %q", len(missing), byteName(missing[0]))
	}
	if _, ok := b.t.ids[blank]; !ok {
		return fmt.Errorf("no token is %q", blank)
	}
	return nil
}

// byteName is how the token of a byte is spelled.
func byteName(value byte) string { return fmt.Sprintf("<0x%02X>", value) }

// score makes the merges: of each token in two parts that may be neighbours, those of a higher score first.
func (b *builder) score(tokens, scores gguf.Value) error {
	type scored struct {
		id    int32
		text  string
		score float32
	}
	var list []scored
	for i, score := range scores.Floats() {
		if math.IsNaN(float64(score)) {
			return fmt.Errorf("entry %d is %v", i, score)
		}
		list = append(list, scored{id: int32(i), score: score})
	}
	for i, raw := range tokens.Texts() {
		list[i].text = string(raw)
	}
	list = slices.DeleteFunc(list, func(s scored) bool { return b.t.roles[s.id] != normal })
	slices.SortStableFunc(list, func(x, y scored) int { return cmp.Compare(y.score, x.score) })
	rank := int32(0)
	for i, s := range list {
		if i > 0 && s.score != list[i-1].score {
			rank++
		}
		for at := range s.text {
			left, okL := b.symbol(s.text[:at])
			right, okR := b.symbol(s.text[at:])
			if okL && okR {
				b.t.merges[pair(left, right)] = merge{rank: rank, id: s.id}
			}
		}
	}
	return nil
}

// symbol returns the id of a text that can be a neighbour: a token or a single character.
func (b *builder) symbol(text string) (int32, bool) {
	if id, ok := b.t.ids[text]; ok {
		return id, true
	}
	if utf8.RuneCountInString(text) != 1 {
		return 0, false
	}
	p := b.t.pieces
	id := int32(len(b.t.text) + len(p.loose))
	p.loose = append(p.loose, text)
	b.t.ids[text] = id
	return id, true
}

// characters encodes text without special tokens with a vocabulary of SentencePiece.
func (e *encoder) characters(text string) {
	if text == "" {
		return
	}
	p, s := e.t.pieces, &e.scratch
	text = strings.ReplaceAll(text, " ", blank)
	if p.prefix {
		text = blank + text
	}
	s.ids = s.ids[:0]
	for len(text) > 0 {
		_, n := utf8.DecodeRuneInString(text)
		if id, ok := e.t.ids[text[:n]]; ok {
			s.ids = append(s.ids, id)
		} else {
			s.ids = e.t.spell(s.ids, text[:n])
		}
		text = text[n:]
	}
	s.merge(e.t.merges)
	for _, id := range s.ids {
		if loose := int(id) - e.t.Vocab(); loose >= 0 {
			e.out = e.t.spell(e.out, p.loose[loose])
		} else {
			e.out = append(e.out, id)
		}
	}
}

// spell appends the tokens of single bytes.
func (t *Tokenizer) spell(dst []int32, text string) []int32 {
	for i := range len(text) {
		dst = append(dst, t.bytes[text[i]])
	}
	return dst
}
