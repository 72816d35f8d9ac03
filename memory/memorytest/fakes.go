package memorytest

import (
	"context"

	"github.com/ragpilot/ragpilot/memory"
)

// scripted is a fake extractor: it looks up what is related to the messages, as one that asks a model does, and
// returns what the check wants.
type scripted func(related []memory.Memory) ([]memory.Action, error)

func (f scripted) Extract(ctx context.Context, in memory.Extraction) ([]memory.Action, error) {
	all := make([]string, 0, len(in.Messages))
	for _, m := range in.Messages {
		all = append(all, m.Content)
	}
	related, err := in.Related(ctx, all, 10)
	if err != nil {
		return nil, err
	}
	var memories []memory.Memory
	for _, list := range related {
		memories = append(memories, list...)
	}
	return f(memories)
}

// idOf returns the ID of the memory with that text.
func idOf(memories []memory.Memory, text string) string {
	for i := range memories {
		if memories[i].Text == text {
			return memories[i].ID
		}
	}
	return ""
}
