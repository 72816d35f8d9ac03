package bpe

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// builder collects a vocabulary. Its memory is what the finished tokenizer keeps.
type builder struct {
	t        *Tokenizer
	alphabet *alphabet
	scratch  []byte
	arena    strings.Builder // holds the text of all tokens, so that they are one piece of memory
}

// ErrUnsupported is wrapped by errors of vocabularies that are sound but of a kind that is not read.
var ErrUnsupported = errors.New("not supported")

func newBuilder(split Splitter, tokens, merges int) *builder {
	t := &Tokenizer{
		text:   make([]string, tokens),
		roles:  make([]role, tokens),
		ids:    make(map[string]int32, tokens),
		merges: make(map[uint64]merge, merges),
		names:  newSpecials(),
		split:  split,
	}
	return &builder{t: t, alphabet: newAlphabet()}
}

// token enters a token that merges make, spelled as in vocabularies.
func (b *builder) token(id int, spelling []byte) {
	raw, ok := b.alphabet.unspell(b.scratch[:0], spelling)
	b.scratch = raw
	if !ok { // no merge makes it, but it can be decoded
		b.t.text[id], b.t.roles[id] = b.keep(spelling), normal
		return
	}
	text := b.keep(raw)
	b.t.text[id], b.t.roles[id] = text, normal
	if _, twice := b.t.ids[text]; !twice {
		b.t.ids[text] = int32(id)
	}
}

// keep returns a copy of text in the arena.
func (b *builder) keep(text []byte) string {
	begin := b.arena.Len()
	b.arena.Write(text)
	return b.arena.String()[begin:]
}

// name enters a special token, by its name.
func (b *builder) name(id int, name string, r role) {
	b.t.text[id], b.t.roles[id] = name, r
	b.t.names.add(name, int32(id))
}

// merge enters the rank-th merge. Of the same one twice, the later counts.
func (b *builder) merge(rank int, left, right []byte) error {
	raw, ok := b.alphabet.unspell(b.scratch[:0], left)
	middle := len(raw)
	if ok {
		raw, ok = b.alphabet.unspell(raw, right)
	}
	b.scratch = raw
	if !ok {
		return fmt.Errorf("merge %d, %q and %q: not spelled as bytes", rank, left, right)
	}
	l, okL := b.t.ids[string(raw[:middle])]
	r, okR := b.t.ids[string(raw[middle:])]
	id, okID := b.t.ids[string(raw)]
	if !okL || !okR || !okID {
		return fmt.Errorf("merge %d, %q and %q: the vocabulary lacks one of them or both together", rank, left, right)
	}
	b.t.merges[pair(l, r)] = merge{rank: int32(rank), id: id}
	return nil
}

// finish returns the tokenizer.
func (b *builder) finish() (*Tokenizer, error) {
	known := 0
	for i := range b.t.bytes {
		id, ok := b.t.ids[string([]byte{byte(i)})]
		if !ok {
			id = -1
		} else {
			known++
		}
		b.t.bytes[i] = id
	}
	if known == 0 {
		return nil, errors.New("no token is a single byte")
	}
	return b.t, nil
}

// maxTokens is the most ids that a vocabulary may have.
const maxTokens = math.MaxInt32 / 2
