package memory

import (
	"context"
	"fmt"
	"strings"
)

// reconcileRelated is how many stored memories are looked up for each fact (Mem0 1.x).
const reconcileRelated = 5

// reconcile extracts facts and makes the stored memories agree with them.
type reconcile struct{ model Model }

var _ Extractor = reconcile{}

// Reconcile returns the extractor of Mem0 up to 1.x: a first call takes facts out of the messages, a second one is shown the
// stored memories nearest to them and says what is new, what is updated and what is contradicted. So of facts that
// contradict each other the newest stays. If nothing related is stored there is no second call.
func Reconcile(model Model) Extractor { return reconcile{model} }

// Extract asks the model. Messages without text cause no call.
func (r reconcile) Extract(ctx context.Context, in Extraction) ([]Action, error) {
	facts, err := r.facts(ctx, in)
	if err != nil || len(facts) == 0 {
		return nil, err
	}
	related, err := in.Related(ctx, facts, reconcileRelated)
	if err != nil {
		return nil, err
	}
	stored := distinct(related)
	if len(stored) == 0 {
		actions := make([]Action, len(facts))
		for i, fact := range facts {
			actions[i] = Action{Event: Added, Text: fact}
		}
		return actions, nil
	}
	prompt := sections(
		"Additional instructions", in.Instructions,
		"Stored memories", numbered(stored),
		"New facts", dashed(facts),
	)
	items, err := ask(ctx, r.model, "decisions about stored memories", "memory", reconcilePrompt, prompt)
	if err != nil {
		return nil, err
	}
	return decisions(items, stored), nil
}

// facts asks for the statements in the messages.
func (r reconcile) facts(ctx context.Context, in Extraction) ([]string, error) {
	talk := transcript(in.Messages)
	if talk == "" {
		return nil, nil
	}
	prompt := sections("Additional instructions", in.Instructions, "Messages", talk)
	items, err := ask(ctx, r.model, "facts", "facts", factsPrompt, prompt)
	if err != nil {
		return nil, err
	}
	var facts []string
	for _, item := range items {
		if fact := strings.TrimSpace(item.text()); fact != "" {
			facts = append(facts, fact)
		}
	}
	return facts, nil
}

// decisions translates the model's numbers back. A number that was not given is dropped, and so is an event that is
// none. What replaces comes before what is removed: if the model moves a text from one memory to another, it is there
// at every moment.
func decisions(items []item, stored []Memory) []Action {
	var changed, removed []Action
	for _, it := range items {
		event := Event(strings.ToUpper(strings.TrimSpace(it.Event)))
		text := strings.TrimSpace(it.text())
		if event == Added {
			if text != "" {
				changed = append(changed, Action{Event: Added, Text: text, Entities: it.entities()})
			}
			continue
		}
		n, ok := it.number(len(stored))
		if !ok {
			continue
		}
		switch event {
		case Updated:
			if text != "" {
				changed = append(changed, Action{Event: Updated, ID: stored[n].ID, Text: text, Entities: it.entities()})
			}
		case Deleted:
			removed = append(removed, Action{Event: Deleted, ID: stored[n].ID})
		}
	}
	return append(changed, removed...)
}

// distinct returns the memories of all lists once, the oldest first: the same memories always stand in the same
// order, and a new one stands behind them, so that a prompt shares as much as it can with the one before.
func distinct(lists [][]Memory) []Memory {
	seen := map[string]bool{}
	var all []Memory
	for _, list := range lists {
		for _, m := range list {
			if !seen[m.ID] {
				seen[m.ID] = true
				all = append(all, m)
			}
		}
	}
	sortByAge(all)
	return all
}

// numbered lists memories under the numbers that the model has to use: it cannot invent one that means something.
func numbered(memories []Memory) string {
	var b strings.Builder
	for i, m := range memories {
		fmt.Fprintf(&b, "[%d] %s\n", i, oneLine(m.Text))
	}
	return b.String()
}

func dashed(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString("- " + oneLine(line) + "\n")
	}
	return b.String()
}
