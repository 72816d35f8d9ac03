package framework

import "github.com/ragpilot/ragpilot/contextpilot"

// Outcome says what became of a request: one of which nothing was heard is gone, any other was computed, cached tokens of it
// read from the engine's cache and output tokens made. Models that know nothing of a cache say 0, too.
func Outcome(heard bool, cached, output int) contextpilot.Event {
	if !heard {
		return contextpilot.Event{Kind: contextpilot.Gone}
	}
	return contextpilot.Event{Kind: contextpilot.Served, Tokens: max(cached, 0), CachedKnown: cached > 0, Output: max(output, 0)}
}

// Unambiguous takes away the IDs that stand for more than one text, as they would for the model; such blocks are known by
// their texts. It changes blocks and returns it.
func Unambiguous(blocks []contextpilot.Block) []contextpilot.Block {
	first, twice := make(map[string]string, len(blocks)), map[string]bool{}
	for _, b := range blocks {
		if text, ok := first[b.ID]; ok && text != b.Text {
			twice[b.ID] = true
		}
		first[b.ID] = b.Text
	}
	for i := range blocks {
		if twice[blocks[i].ID] {
			blocks[i].ID = ""
		}
	}
	return blocks
}
