package bpe

import (
	"bytes"
	"fmt"

	"github.com/ragpilot/ragpilot/engines/local/internal/gguf"
)

// The keys of a vocabulary in a GGUF file.
const (
	keyModel  = "tokenizer.ggml.model"
	keySplit  = "tokenizer.ggml.pre"
	keyTokens = "tokenizer.ggml.tokens"
	keyTypes  = "tokenizer.ggml.token_type"
	keyMerges = "tokenizer.ggml.merges"
)

// The values of keyTypes that are not normal tokens.
const (
	typeUnknown = 2
	typeControl = 3
	typeUser    = 4
	typeUnused  = 5
)

// splitterOf returns the splitter of a name in a GGUF file, and whether a word that is a token is not taken apart.
func splitterOf(name string) (split Splitter, whole, ok bool) {
	switch name {
	case "gpt-2", "gpt2", "mpt", "olmo":
		return GPT2, false, true
	case "smollm", "starcoder", "refact":
		return SmolLM, false, true
	case "llama-bpe", "llama3", "llama-v3", "falcon3":
		return Llama3, true, true
	case "qwen2", "deepseek-r1-qwen":
		return Qwen2, false, true
	}
	return 0, false, false
}

// FromGGUF reads the vocabulary of a GGUF file. Nothing of the file is kept.
func FromGGUF(metadata map[string]gguf.Value) (*Tokenizer, error) {
	t, err := fromGGUF(metadata)
	if err != nil {
		return nil, fmt.Errorf("bpe: %w", err)
	}
	return t, nil
}

func fromGGUF(metadata map[string]gguf.Value) (*Tokenizer, error) {
	if model, _ := metadata[keyModel].Text(); model != "gpt2" {
		return nil, fmt.Errorf("key %q: %q: %w; want %q", keyModel, model, ErrUnsupported, "gpt2")
	}
	name, _ := metadata[keySplit].Text()
	split, whole, ok := splitterOf(name)
	if !ok {
		return nil, fmt.Errorf("key %q: %q: %w", keySplit, name, ErrUnsupported)
	}
	tokens, merges, err := lists(metadata)
	if err != nil {
		return nil, err
	}
	b := newBuilder(split, tokens.Len, merges.Len)
	b.t.whole, b.t.compose = whole, split == Qwen2 // Qwen's own tokenizer composes; the file does not say so
	if err := b.tokensOf(tokens, metadata); err != nil {
		return nil, err
	}
	for i, text := range merges.Texts() {
		left, right, ok := bytes.Cut(text, []byte{' '})
		if !ok || len(left) == 0 || len(right) == 0 {
			return nil, fmt.Errorf("key %q: merge %d is %q, want two tokens", keyMerges, i, text)
		}
		if err := b.merge(i, left, right); err != nil {
			return nil, fmt.Errorf("key %q: %w", keyMerges, err)
		}
	}
	return b.finish()
}

// lists returns the tokens and the merges.
func lists(metadata map[string]gguf.Value) (tokens, merges gguf.Value, err error) {
	for _, l := range []struct {
		key string
		v   *gguf.Value
	}{{keyTokens, &tokens}, {keyMerges, &merges}} {
		*l.v = metadata[l.key]
		if l.v.Kind != gguf.Array || l.v.Elem != gguf.String {
			return tokens, merges, fmt.Errorf("key %q: not there, or no array of strings", l.key)
		}
		if l.v.Len > maxTokens {
			return tokens, merges, fmt.Errorf("key %q: %d entries, more than %d", l.key, l.v.Len, maxTokens)
		}
	}
	return tokens, merges, nil
}

// tokensOf enters the tokens, each by its type; without types all are normal.
func (b *builder) tokensOf(tokens gguf.Value, metadata map[string]gguf.Value) error {
	roles := b.t.roles
	for i := range roles {
		roles[i] = normal
	}
	if types, ok := metadata[keyTypes]; ok {
		if types.Len != tokens.Len {
			return fmt.Errorf("key %q: %d entries for %d tokens", keyTypes, types.Len, tokens.Len)
		}
		for i, n := range types.Ints() {
			switch n {
			case typeControl, typeUnknown:
				roles[i] = control
			case typeUser:
				roles[i] = user
			case typeUnused:
				roles[i] = unused
			}
		}
	}
	size := 0
	for _, text := range tokens.Texts() {
		size += len(text)
	}
	b.arena.Grow(size)
	for i, text := range tokens.Texts() {
		switch roles[i] {
		case normal:
			b.token(i, text)
		case control, user:
			b.name(i, string(text), roles[i])
		}
	}
	return nil
}
