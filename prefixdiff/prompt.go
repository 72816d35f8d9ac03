package prefixdiff

import (
	"fmt"

	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// Role is the author of a part.
type Role uint8

// The roles. What stands in no message has the role System.
const (
	System Role = iota + 1
	User
	Assistant
	Tool
)

// Kind is what a part is.
type Kind uint8

// The kinds.
const (
	Text      Kind = iota // words of a message or of the system text
	Setting               // a member that decides which cache is asked, or is rendered into the prompt: the model, a salt, an effort
	Function              // the definition of a tool, as JSON
	Schema                // the schema of a structured answer, as JSON
	Arguments             // of a call of a tool, or other JSON in a message
	Name                  // of a tool, or of a message's author
	Ident                 // the identifier of a call
	Media                 // an image, a sound or a file
	Opaque                // anything else, compared as bytes
)

// String returns a kind as it is written in messages.
func (k Kind) String() string {
	names := [...]string{"text", "setting", "function", "schema", "arguments", "name", "identifier", "media", "other"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("Kind(%d)", k)
}

// Part is a piece of a prompt. Parts stand in the order in which engines read them: settings, schema, tools, system text, messages.
type Part struct {
	Path string // where it stands in the request's JSON: messages[0].content
	Kind Kind
	Role Role
	Turn int // which message, from 0; -1: none
	At   int // where it begins in the text at Path, in bytes, if that has several messages
	Text string
}

// Front is the Turn of parts that stand in no message.
const Front = -1

// Prompt is what a request makes the model read.
type Prompt struct {
	Parts []Part
	// Partial says that the provider puts something in front that is not in the request, such as a stored conversation. Nothing
	// is found for such a prompt.
	Partial bool
}

// FromText returns the prompt of a text. If it has several messages, in a model's chat template or behind names such as "Human:", each
// is a part.
func FromText(text string) Prompt {
	var r reader
	r.transcript("prompt", text)
	return Prompt{Parts: r.parts}
}

// mediaTokens is what a picture counts, as its size is not known.
const mediaTokens = 256

// tokens estimates the length of a part.
func (p *Part) tokens() int {
	switch p.Kind {
	case Setting, Ident:
		return 0
	case Media:
		return mediaTokens
	}
	return tokens.Count(p.Text)
}

// worded is the text whose words are compared, of the same length.
func (p *Part) worded() string {
	if p.Kind.json() {
		return blankEscapes(p.Text)
	}
	return p.Text
}

// Tokens estimates the length of the prompt, with the tokens that package contextpilot counts by default. A picture counts 256.
func (p Prompt) Tokens() int {
	n := 0
	for i := range p.Parts {
		n += p.Parts[i].tokens()
	}
	return n
}
