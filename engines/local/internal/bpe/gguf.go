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
	keyScores = "tokenizer.ggml.scores"
	keyPrefix = "tokenizer.ggml.add_space_prefix"
)

// The values of keyTypes that are not normal tokens.
const (
	typeUnknown = 2
	typeControl = 3
	typeUser    = 4
	typeUnused  = 5
	typeByte    = 6
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
	switch model, _ := metadata[keyModel].Text(); model {
	case "gpt2":
		return byteLevel(metadata)
	case "llama":
		return sentencePiece(metadata)
	default:
		return nil, fmt.Errorf("key %q: %q: %w; want %q or %q", keyModel, model, ErrUnsupported, "gpt2", "llama")
	}
}

// byteLevel reads a vocabulary of bytes and merges.
func byteLevel(metadata map[string]gguf.Value) (*Tokenizer, error) {
	name, _ := metadata[keySplit].Text()
	split, whole, ok := splitterOf(name)
	if !ok {
		return nil, fmt.Errorf("key %q: %q: %w", keySplit, name, ErrUnsupported)
	}
	tokens, err := texts(metadata, keyTokens)
	if err != nil {
		return nil, err
	}
	merges, err := texts(metadata, keyMerges)
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

// texts returns an array of strings.
func texts(metadata map[string]gguf.Value, key string) (gguf.Value, error) {
	list := metadata[key]
	if list.Kind != gguf.Array || list.Elem != gguf.String {
		return list, fmt.Errorf("key %q: not there, or no array of strings", key)
	}
	if list.Len > maxTokens {
		return list, fmt.Errorf("key %q: %d entries, more than %d", key, list.Len, maxTokens)
	}
	return list, nil
}

// tokensOf enters the tokens, each by its type; without types all are normal.
func (b *builder) tokensOf(tokens gguf.Value, metadata map[string]gguf.Value) error {
	if err := b.rolesOf(metadata); err != nil {
		return err
	}
	size := 0
	for _, text := range tokens.Texts() {
		size += len(text)
	}
	b.arena.Grow(size)
	for i, text := range tokens.Texts() {
		switch r := b.t.roles[i]; r {
		case normal, single:
			b.token(i, text)
		case control, user:
			b.name(i, string(text), r)
		}
	}
	return nil
}

// rolesOf sets the roles of all tokens by their types.
func (b *builder) rolesOf(metadata map[string]gguf.Value) error {
	roles := b.t.roles
	for i := range roles {
		roles[i] = normal
	}
	types, ok := metadata[keyTypes]
	if ok && types.Len != len(roles) {
		return fmt.Errorf("key %q: %d entries for %d tokens", keyTypes, types.Len, len(roles))
	}
	for i, n := range types.Ints() {
		switch n {
		case typeControl, typeUnknown:
			roles[i] = control
		case typeUser:
			roles[i] = user
		case typeUnused:
			roles[i] = unused
		case typeByte:
			roles[i] = single
		}
	}
	return nil
}
