package local

import (
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local/internal/chattemplate"
)

var _ contextpilot.Tokenizer = (*Engine)(nil)

// chat returns the tokens of a chat with the beginning of the answer.
func (e *Engine) chat(messages []engines.Message) []int32 {
	chat := make([]chattemplate.Message, len(messages))
	for i, m := range messages {
		chat[i] = chattemplate.Message{Role: string(m.Role), Content: m.Content}
	}
	return e.file.Chat(chat, true)
}

// TokenizeChat returns the tokens of a chat as Generate sends them to the model.
func (e *Engine) TokenizeChat(messages []engines.Message) []int32 { return e.chat(messages) }

// Tokenize returns the tokens of a text as GenerateTokens takes them, with the token that begins every text if the model has one.
func (e *Engine) Tokenize(text string) []int32 { return e.file.Text(text) }

// TokenizeBare returns the tokens of a text as it stands: as Tokenize, without a token in front that the text does not name itself.
func (e *Engine) TokenizeBare(text string) []int32 { return e.file.Tokenizer.Encode(text, true) }

// Detokenize returns the text of tokens, with the names of special ones. Unknown ones are left out.
func (e *Engine) Detokenize(tokens []int32) string { return e.file.Tokenizer.Decode(tokens, true) }

// Count returns the number of tokens of a text. It makes the engine a [contextpilot.Tokenizer].
func (e *Engine) Count(text string) int { return e.file.Tokenizer.Count(text) }
