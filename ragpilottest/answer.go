package ragpilottest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// Answer is what the recorder answers: a text, calls of tools, or both.
type Answer struct {
	Text  string
	Calls []Call
}

// Call is a call of a tool.
type Call struct {
	Name string
	// Arguments are anything that is an object in JSON; nil: none.
	Arguments any
	// ID is the identifier; "": call_1 for the first one in a conversation, and so on, and none in Gemini's API. Providers make a new one
	// for each call.
	ID string
}

// DefaultAnswer is what the recorder answers without a script.
const DefaultAnswer = "This is the answer of a recorder."

// reply is an answer on its way to a client.
type reply struct {
	Request
	model  string
	text   string
	calls  []call
	output int // tokens
}

// call is a call with an identifier and with arguments in JSON.
type call struct {
	id, name  string
	arguments json.RawMessage
	scripted  bool // the identifier
}

// prepare makes the calls complete. Earlier is how many calls the conversation has.
func (a Answer) prepare(earlier int) (text string, calls []call, err error) {
	for i, c := range a.Calls {
		if c.Name == "" {
			return "", nil, fmt.Errorf("the scripted call %d has no name", i+1)
		}
		arguments := []byte("{}")
		if c.Arguments != nil {
			if arguments, err = json.Marshal(c.Arguments); err != nil {
				return "", nil, fmt.Errorf("the arguments of the scripted call of %s: %w", c.Name, err)
			}
		}
		if arguments[0] != '{' {
			return "", nil, fmt.Errorf("the arguments of the scripted call of %s are %s: want an object", c.Name, arguments)
		}
		scripted := c.ID != ""
		if !scripted {
			c.ID = fmt.Sprintf("call_%d", earlier+i+1)
		}
		calls = append(calls, call{c.ID, c.Name, arguments, scripted})
	}
	return a.Text, calls, nil
}

// count returns the tokens of the answer.
func (r *reply) count() int {
	n := tokens.Count(r.text)
	for _, c := range r.calls {
		n += tokens.Count(c.name) + tokens.Count(string(c.arguments))
	}
	return n
}

// pieces cuts the text for a stream: behind each word.
func (r *reply) pieces() []string {
	if r.text == "" {
		return nil
	}
	return strings.SplitAfter(r.text, " ")
}

// halves cuts arguments for a stream. Clients put them together.
func (c *call) halves() [2]string {
	half := len(c.arguments) / 2
	for half > 0 && c.arguments[half] >= 0x80 {
		half--
	}
	return [2]string{string(c.arguments[:half]), string(c.arguments[half:])}
}
