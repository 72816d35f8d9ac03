package history

import (
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// item is a message of a conversation with what is known of it.
type item struct {
	Message // Text is what is sent, without a summary in front of it
	plan    *contextpilot.Plan
	at      contextpilot.Position // behind it
	ending  string                // of a planned message: what stands behind blocks and references
	whole   []bool                // by plan item: the block is sent in place of the reference
	tokens  int                   // all that the message takes
	shows   []block
}

// block is a text under the label that names it.
type block struct{ label, text string }

// render returns a planned message with references made whole where whole says so, also.
func (it *item) render(also []bool) string {
	var b strings.Builder
	for i := range it.plan.Items {
		if it.isWhole(i) || also != nil && also[i] {
			b.WriteString(it.plan.RenderFull(i))
		} else {
			b.WriteString(it.plan.RenderItem(i))
		}
	}
	return b.String() + it.ending
}

func (it *item) isWhole(i int) bool { return it.whole != nil && it.whole[i] }

// dangling returns which references of the message would lead nowhere behind messages that show these blocks, by plan item;
// nil: none.
func (it *item) dangling(shown map[block]bool) (missing []bool) {
	if it.plan == nil {
		return nil
	}
	for i, x := range it.plan.Items {
		if x.Ref == nil || it.isWhole(i) {
			continue
		}
		b := block{x.Ref.Label, it.plan.Block(x.Index).Text}
		if shown[b] {
			continue
		}
		if missing == nil {
			missing = make([]bool, len(it.plan.Items))
		}
		missing[i] = true
		shown[b] = true
	}
	return missing
}

// show adds the blocks that the message shows.
func (it *item) show(shown map[block]bool) {
	for _, b := range it.shows {
		shown[b] = true
	}
}

// end returns the position behind the items.
func end(items []item) contextpilot.Position {
	if len(items) == 0 {
		return contextpilot.Position{}
	}
	return items[len(items)-1].at
}

// messages returns a copy of the items' messages.
func messages(items []item) []Message {
	out := make([]Message, len(items))
	for i := range items {
		out[i] = items[i].Message
		out[i].Calls, out[i].Answers = slices.Clone(out[i].Calls), slices.Clone(out[i].Answers)
	}
	return out
}
