package bpe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// document is a tokenizer.json of Hugging Face's tokenizers, as far as it matters here.
type document struct {
	AddedTokens   []added         `json:"added_tokens"`
	Normalizer    *part           `json:"normalizer"`
	PreTokenizer  *part           `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       *part           `json:"decoder"`
	Model         bpeModel        `json:"model"`
}

type added struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Special    bool   `json:"special"`
}

// part is a normalizer, pre-tokenizer or decoder of any type.
type part struct {
	Type string `json:"type"`
	// A sequence has one of these.
	Pretokenizers []part `json:"pretokenizers"`
	Normalizers   []part `json:"normalizers"`
	Decoders      []part `json:"decoders"`
	// ByteLevel
	AddPrefixSpace bool  `json:"add_prefix_space"`
	UseRegex       *bool `json:"use_regex"`
	// Digits
	IndividualDigits bool `json:"individual_digits"`
	// Split
	Pattern struct {
		Regex  string
		String string
	} `json:"pattern"`
	Behavior string `json:"behavior"`
	Invert   bool   `json:"invert"`
	// Replace and Prepend
	Content string `json:"content"`
	Prepend string `json:"prepend"`
}

type bpeModel struct {
	Type         string            `json:"type"`
	Vocab        map[string]int    `json:"vocab"`
	Merges       []json.RawMessage `json:"merges"`
	UnkToken     *string           `json:"unk_token"`
	FuseUnk      bool              `json:"fuse_unk"`
	IgnoreMerges bool              `json:"ignore_merges"`
	ByteFallback bool              `json:"byte_fallback"`
	Dropout      *float64          `json:"dropout"`
	Prefix       *string           `json:"continuing_subword_prefix"`
	Suffix       *string           `json:"end_of_word_suffix"`
}

// FromJSON reads a tokenizer.json of Hugging Face's tokenizers: byte-level BPE with one of the package's splitters, or
// SentencePiece's as Llama 2 has it. What is not supported is refused by its name; nothing is skipped silently that would
// change ids.
func FromJSON(data []byte) (*Tokenizer, error) {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("bpe: tokenizer.json: %w", err)
	}
	t, err := d.build()
	if err != nil {
		return nil, fmt.Errorf("bpe: tokenizer.json: %w", err)
	}
	return t, nil
}

func (d *document) build() (*Tokenizer, error) {
	if err := d.Model.check(); err != nil {
		return nil, err
	}
	if d.Model.ByteFallback {
		return d.pieces()
	}
	split, err := d.splitter()
	if err != nil {
		return nil, err
	}
	if !d.Decoder.is("ByteLevel") {
		return nil, fmt.Errorf("decoder %q: %w; want ByteLevel", d.Decoder.Type, ErrUnsupported)
	}
	compose := d.Normalizer != nil
	if compose && !d.Normalizer.is("NFC") {
		return nil, fmt.Errorf("normalizer %q: %w; want none or NFC", d.Normalizer.Type, ErrUnsupported)
	}
	tokens, err := d.size()
	if err != nil {
		return nil, err
	}
	b := newBuilder(split, tokens, len(d.Model.Merges))
	b.t.whole, b.t.compose, b.t.fuse = d.Model.IgnoreMerges, compose, d.Model.FuseUnk
	if err := d.enter(b); err != nil {
		return nil, err
	}
	b.t.first, _ = firstOf(d.PostProcessor, 0)
	return b.finish()
}

// is reports whether a part is of a type, or is a sequence of one such part, or is not there.
func (p *part) is(kind string) bool {
	if p == nil {
		return true
	}
	if p.Type == "Sequence" {
		inner := slices.Concat(p.Pretokenizers, p.Normalizers, p.Decoders)
		return len(inner) == 1 && inner[0].is(kind)
	}
	return p.Type == kind
}

func (m *bpeModel) check() error {
	switch {
	case m.Type != "BPE" && (m.Type != "" || m.Merges == nil):
		return fmt.Errorf("model.type %q: %w; want BPE", m.Type, ErrUnsupported)
	case m.Dropout != nil && *m.Dropout != 0:
		return fmt.Errorf("model.dropout %v: %w", *m.Dropout, ErrUnsupported)
	case m.Prefix != nil && *m.Prefix != "":
		return fmt.Errorf("model.continuing_subword_prefix %q: %w", *m.Prefix, ErrUnsupported)
	case m.Suffix != nil && *m.Suffix != "":
		return fmt.Errorf("model.end_of_word_suffix %q: %w", *m.Suffix, ErrUnsupported)
	}
	return nil
}

// size returns the number of ids: one more than the largest. Ids that nothing has may be no more than those in use, or
// the file would make us hold what it does not hold.
func (d *document) size() (int, error) {
	most, known := -1, len(d.Model.Vocab)+len(d.AddedTokens)
	look := func(name string, id int) error {
		if id < 0 || id > 2*known+1024 {
			return fmt.Errorf("token %q: id %d with %d tokens", name, id, known)
		}
		most = max(most, id)
		return nil
	}
	for name, id := range d.Model.Vocab {
		if err := look(name, id); err != nil {
			return 0, err
		}
	}
	for _, a := range d.AddedTokens {
		if a.SingleWord || a.LStrip || a.RStrip {
			return 0, fmt.Errorf("added token %q: single_word, lstrip or rstrip: %w", a.Content, ErrUnsupported)
		}
		if err := look(a.Content, a.ID); err != nil {
			return 0, err
		}
	}
	return most + 1, nil
}

// enter enters tokens, names and merges.
func (d *document) enter(b *builder) error {
	taken := make([]bool, len(b.t.text))
	for spelling, id := range d.Model.Vocab {
		if taken[id] {
			return fmt.Errorf("token %q: id %d is another token's too", spelling, id)
		}
		taken[id] = true
		b.token(id, []byte(spelling))
	}
	for i, raw := range d.Model.Merges {
		left, right, err := parseMerge(raw)
		if err != nil {
			return fmt.Errorf("merge %d: %w", i, err)
		}
		if err := b.merge(i, left, right); err != nil {
			return err
		}
	}
	for _, a := range d.AddedTokens {
		r := user
		if a.Special {
			r = control
		}
		b.name(a.ID, a.Content, r)
	}
	if u := d.Model.UnkToken; u != nil {
		id, ok := d.Model.Vocab[*u]
		if !ok {
			return fmt.Errorf("model.unk_token %q: not in the vocabulary", *u)
		}
		b.t.unknown = int32(id)
	}
	return nil
}

// parseMerge reads "a b" or ["a", "b"].
func parseMerge(raw json.RawMessage) (left, right []byte, err error) {
	var two [2]string
	if len(raw) > 0 && raw[0] == '[' {
		if err := json.Unmarshal(raw, &two); err != nil {
			return nil, nil, err
		}
		return []byte(two[0]), []byte(two[1]), nil
	}
	var one string
	if err := json.Unmarshal(raw, &one); err != nil {
		return nil, nil, err
	}
	l, r, ok := cutMerge(one)
	if !ok {
		return nil, nil, fmt.Errorf("%q, want two tokens", one)
	}
	return []byte(l), []byte(r), nil
}

// cutMerge cuts "a b" at its only blank.
func cutMerge(s string) (left, right string, ok bool) {
	left, right, ok = strings.Cut(s, " ")
	return left, right, ok && left != "" && right != "" && !strings.Contains(right, " ")
}
