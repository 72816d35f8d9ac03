package memory

import (
	"context"
	"strings"
)

// Figures of Mem0 2.x.
const (
	addOnlyWindow  = 10
	addOnlyRelated = 10
)

// addOnly extracts with one call and never touches what is stored.
type addOnly struct{ model Model }

var (
	_ Extractor = addOnly{}
	_ Windowed  = addOnly{}
)

// AddOnly returns the extractor of Mem0 2.x: one call of the model, which sees the last messages of the scope, the memories
// nearest to the new messages, and these, and answers with what is new. Stored memories are never changed: that an
// old one is outdated shows in the newer one beside it.
func AddOnly(model Model) Extractor { return addOnly{model} }

// Window returns how many earlier messages the prompt shows.
func (addOnly) Window() int { return addOnlyWindow }

// Extract asks the model. Messages without text cause no call.
func (a addOnly) Extract(ctx context.Context, in Extraction) ([]Action, error) {
	talk := transcript(in.Messages)
	if talk == "" {
		return nil, nil
	}
	related, err := in.Related(ctx, []string{talk}, addOnlyRelated)
	if err != nil {
		return nil, err
	}
	prompt := sections(
		"Additional instructions", in.Instructions,
		"Known memories", numbered(distinct(related)),
		"Earlier messages", transcript(in.Recent),
		"New messages", talk,
	)
	found, err := ask(ctx, a.model, "new memories", "memory", addOnlyPrompt, prompt)
	if err != nil {
		return nil, err
	}
	var actions []Action
	for _, item := range found {
		if text := strings.TrimSpace(item.text()); text != "" {
			actions = append(actions, Action{Event: Added, Text: text, Role: strings.ToLower(item.Attributed), Entities: item.entities()})
		}
	}
	return actions, nil
}
