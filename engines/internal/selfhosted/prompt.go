package selfhosted

import (
	"bytes"
	"encoding/json"
)

// PromptTokens collects a prompt's tokens from the chunks of an answer. They stand in one chunk only, on its top level or in
// the first choice.
type PromptTokens struct {
	Tokens []uint32
	found  bool
}

var tokensMember = []byte(`"prompt_token_ids"`)

// Chunk reads one chunk. A chunk that cannot be read has none.
func (p *PromptTokens) Chunk(data []byte) {
	if p.found || !bytes.Contains(data, tokensMember) {
		return
	}
	var chunk struct {
		Tokens  []uint32 `json:"prompt_token_ids"`
		Choices []struct {
			Index  int      `json:"index"`
			Tokens []uint32 `json:"prompt_token_ids"`
		} `json:"choices"`
	}
	if json.Unmarshal(data, &chunk) != nil {
		return
	}
	tokens := chunk.Tokens
	for _, c := range chunk.Choices {
		if c.Index == 0 && tokens == nil {
			tokens = c.Tokens
		}
	}
	if tokens != nil { // null is no answer
		p.Tokens, p.found = tokens, true
	}
}
