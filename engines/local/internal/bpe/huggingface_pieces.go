package bpe

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// pieces reads a vocabulary of SentencePiece as Llama 2 has it in a tokenizer.json: a normalizer spells spaces, nothing
// splits, merges are listed, and what is no token is bytes.
func (d *document) pieces() (*Tokenizer, error) {
	if d.PreTokenizer != nil {
		return nil, fmt.Errorf("pre_tokenizer %q with model.byte_fallback: %w; want none", d.PreTokenizer.Type, ErrUnsupported)
	}
	if d.Model.IgnoreMerges {
		return nil, fmt.Errorf("model.ignore_merges with model.byte_fallback: %w", ErrUnsupported)
	}
	prefix, err := d.spaces()
	if err != nil {
		return nil, err
	}
	size, err := d.size()
	if err != nil {
		return nil, err
	}
	b := newPiecesBuilder(size, len(d.Model.Merges))
	b.t.pieces.prefix = prefix
	if err := d.enter(b); err != nil {
		return nil, err
	}
	b.settle()
	if err := b.complete(); err != nil {
		return nil, fmt.Errorf("model.vocab: %w", err)
	}
	b.t.first, _ = firstOf(d.PostProcessor, 0)
	return b.t, nil
}

// spaces reports whether text begins with a space that is not there. It is an error if spaces are spelled otherwise.
func (d *document) spaces() (prefix bool, err error) {
	steps, decoder := d.Normalizer.steps(), []string{"Replace", "ByteFallback", "Fuse"}
	if len(steps) > 0 && steps[0].Type == "Prepend" && steps[0].Prepend == blank {
		prefix, steps, decoder = true, steps[1:], append(decoder, "Strip")
	}
	if len(steps) != 1 || steps[0].Type != "Replace" || steps[0].Pattern.String != " " || steps[0].Content != blank {
		return false, fmt.Errorf("normalizer %q with model.byte_fallback: %w; want Replace of a space by %q, or Prepend of it and Replace",
			names(d.Normalizer.steps()), ErrUnsupported, blank)
	}
	if got := names(d.Decoder.steps()); !slices.Equal(got, decoder) {
		return false, fmt.Errorf("decoder %q with model.byte_fallback: %w; want %q", got, ErrUnsupported, decoder)
	}
	return prefix, nil
}

// steps returns the members of a sequence, or the part itself if it is none.
func (p *part) steps() []part {
	switch {
	case p == nil:
		return nil
	case p.Type == "Sequence":
		return slices.Concat(p.Pretokenizers, p.Normalizers, p.Decoders)
	}
	return []part{*p}
}

// names returns the types of parts.
func names(parts []part) []string {
	list := make([]string, len(parts))
	for i, p := range parts {
		list[i] = p.Type
	}
	return list
}

// settle gives every token its text, and has ordinary text make none that is special or a byte by its name.
func (b *builder) settle() {
	t := b.t
	for text, id := range t.ids {
		if t.roles[id] != normal || b.single(int(id), text) {
			delete(t.ids, text)
			continue
		}
		t.text[id] = strings.ReplaceAll(text, blank, " ")
	}
	maps.DeleteFunc(t.merges, func(_ uint64, m merge) bool { return t.roles[m.id] != normal })
}
