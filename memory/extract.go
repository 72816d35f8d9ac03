package memory

import (
	"context"

	"github.com/ragpilot/ragpilot/memory/internal/statement"
)

// Extractor decides what is remembered of messages. Implementations are safe for concurrent use.
type Extractor interface {
	// Extract returns what should become of the memories. An error means that nothing is stored. What it returns for an
	// ID that it did not get from Related is not applied.
	Extract(ctx context.Context, in Extraction) ([]Action, error)
}

// Windowed is implemented by extractors that want to see messages of earlier adds. A [Local] keeps so many of each
// scope, in the same transaction as what was extracted, and gives them back in Extraction.Recent.
type Windowed interface {
	Window() int
}

// Extraction is what an extractor has to go by.
type Extraction struct {
	Scope    Scope
	Messages []Message
	// Recent are messages of earlier adds to the scope, the oldest first, for a [Windowed] extractor.
	Recent []Message
	// Instructions are the caller's, for the prompt.
	Instructions string
	// Related returns, for each text, at most k stored memories of the scope that are nearest to it, the nearest first.
	// Expired ones are not among them.
	Related func(ctx context.Context, texts []string, k int) ([][]Memory, error)
}

// Action is what an extractor wants: a new text, another text for a memory, or a memory removed. Actions are applied in
// their order. A text that the scope has already is not stored again.
type Action struct {
	Event Event // Added, Updated or Deleted; others are ignored
	ID    string
	Text  string
	Role  string
	Actor string
	// Entities names what the text is about; if it is empty, [Names] is asked.
	Entities []string
}

// Verbatim remembers what users state, in their own words, without asking a model. It is the default. What is not kept is not
// reported by [Store.Add] either; [ChatHistory] is for conversations as they were, and [Everything] for messages that are
// memories whatever their form.
type Verbatim struct {
	// Keep returns what is worth remembering of a message, and "" for nothing; nil: [Statements]. It is called by several
	// goroutines at once. A system message is never stored.
	Keep func(Message) string
	// Assistant stores what Keep returns of an assistant's messages too. They are left out otherwise: an answer repeats what
	// was recalled for it, and its text would be found in place of the fact.
	Assistant bool
}

var _ Extractor = Verbatim{}

// Extract returns one new memory for each message of which something is kept.
func (v Verbatim) Extract(_ context.Context, in Extraction) ([]Action, error) {
	keep := v.Keep
	if keep == nil {
		keep = Statements
	}
	return actionsOf(in.Messages, func(m Message) string {
		if m.Role == Assistant && !v.Assistant {
			return ""
		}
		return keep(m)
	}), nil
}

// Everything remembers every message but a system message as it is: what Mem0 does with infer=False.
type Everything struct{}

var _ Extractor = Everything{}

// Extract returns one new memory for each message that has a text.
func (Everything) Extract(_ context.Context, in Extraction) ([]Action, error) {
	return actionsOf(in.Messages, func(m Message) string { return m.Content }), nil
}

func actionsOf(messages []Message, keep func(Message) string) []Action {
	actions := make([]Action, 0, len(messages))
	for _, m := range messages {
		if m.Role == System {
			continue
		}
		if text := keep(m); text != "" {
			actions = append(actions, Action{Event: Added, Text: text, Role: string(m.Role), Actor: m.Name})
		}
	}
	return actions
}

// Statements returns the sentences of a message that state something: not its questions, greetings, thanks, requests ("Summarise
// this", "Can you …") and remarks such as "I see". They come byte for byte, in their order, with space that stood between
// them; a message in which nothing is dropped comes back as it is, and so does one of a tool.
//
//   - A question ends with a question mark of any script, or has the form of one in English: "when do I need a new passport".
//   - What is to be remembered is a statement whatever its form: "Remember that …", "Note: …", "remind me to …".
//   - So is what a user always wants: "Answer in German", "Never suggest fish".
//   - A sentence that states and asks is kept whole: "I have a dog, can he eat grapes?", "My flight is on Friday, right?".
//   - Code, lists, markup and texts of more than 1,000 characters are not cut up: they are kept, but for a single question.
//   - Of other languages than English, question marks and the common greetings are known; the rest is kept.
func Statements(m Message) string {
	if m.Role == Tool {
		return m.Content
	}
	return statement.Of(m.Content)
}
