package memory

import "context"

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

// Verbatim remembers every message but a system message as it is, without asking a model. It is the default.
type Verbatim struct{}

var _ Extractor = Verbatim{}

// Extract returns one new memory for each message that has a text.
func (Verbatim) Extract(_ context.Context, in Extraction) ([]Action, error) {
	actions := make([]Action, 0, len(in.Messages))
	for _, m := range in.Messages {
		if m.Role != System {
			actions = append(actions, Action{Event: Added, Text: m.Content, Role: string(m.Role), Actor: m.Name})
		}
	}
	return actions, nil
}
