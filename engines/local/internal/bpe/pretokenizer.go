package bpe

import (
	"encoding/json"
	"fmt"
)

// The expressions that tokenizer.json files split with, each what one splitter does.
var expressions = map[string]Splitter{
	`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`:                                          GPT2,
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`: Llama3,
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:      Qwen2,
}

// splitter finds out which splitter the pre-tokenizer is.
func (d *document) splitter() (Splitter, error) {
	if d.PreTokenizer == nil {
		return 0, fmt.Errorf("pre_tokenizer: none: %w", ErrUnsupported)
	}
	parts := []part{*d.PreTokenizer}
	if d.PreTokenizer.Type == "Sequence" {
		parts = d.PreTokenizer.Pretokenizers
	}
	last := len(parts) - 1
	if last < 0 || parts[last].Type != "ByteLevel" {
		return 0, fmt.Errorf("pre_tokenizer %q that does not end with ByteLevel: %w", d.PreTokenizer.Type, ErrUnsupported)
	}
	if parts[last].AddPrefixSpace {
		return 0, fmt.Errorf("pre_tokenizer ByteLevel with add_prefix_space: %w", ErrUnsupported)
	}
	gpt2 := parts[last].UseRegex == nil || *parts[last].UseRegex
	switch {
	case last == 0 && gpt2:
		return GPT2, nil
	case last == 1 && gpt2 && parts[0].Type == "Digits" && parts[0].IndividualDigits:
		return SmolLM, nil
	case last == 1 && !gpt2 && parts[0].Type == "Split":
		return parts[0].expression()
	}
	return 0, fmt.Errorf("pre_tokenizer %v: %w", names(parts), ErrUnsupported)
}

// expression returns the splitter of a Split.
func (p *part) expression() (Splitter, error) {
	split, ok := expressions[p.Pattern.Regex]
	if !ok || p.Behavior != "Isolated" || p.Invert {
		return 0, fmt.Errorf("pre_tokenizer Split, behavior %q, invert %v, by %q: %w",
			p.Behavior, p.Invert, p.Pattern.Regex+p.Pattern.String, ErrUnsupported)
	}
	return split, nil
}

// firstOf looks into a post-processor and the members of a sequence of them.
func firstOf(raw json.RawMessage, depth int) (string, bool) {
	var p struct {
		Type       string            `json:"type"`
		Processors []json.RawMessage `json:"processors"`
		Single     []struct {
			SpecialToken *struct {
				ID string `json:"id"`
			}
		} `json:"single"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &p) != nil {
		return "", false
	}
	if p.Type == "TemplateProcessing" && len(p.Single) > 0 && p.Single[0].SpecialToken != nil {
		return p.Single[0].SpecialToken.ID, true
	}
	if depth > 0 {
		return "", false
	}
	for _, inner := range p.Processors {
		if name, ok := firstOf(inner, depth+1); ok {
			return name, true
		}
	}
	return "", false
}
