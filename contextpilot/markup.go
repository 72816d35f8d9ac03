package contextpilot

import (
	"slices"

	"github.com/ragpilot/ragpilot/internal/prompt/markup"
	"github.com/ragpilot/ragpilot/internal/prompt/notes"
)

// noteForms are the forms of the notes that a pilot writes.
type noteForms []notes.Form

func formsOf(n Notes) noteForms {
	return noteForms{notes.FormOf(n.Order, "order"), notes.FormOf(n.TopOrder, "order"), notes.FormOf(n.Location, "order")}
}

// renderBlock returns the block as it stands in a prompt, with its line feed. A text that has what has the form of a note is fenced,
// so that it cannot stand outside as a reference.
func renderBlock(forms noteForms, label, text string) string {
	return markup.Render(label, text, slices.ContainsFunc(forms, func(f notes.Form) bool { return f.In(text) }))
}

// blockKey returns the key of a block that was found in a text, see [identify].
func blockKey(r *markup.Region) Key { return keyOf(r.Label, contentOf(r.Text)) }

// visible are the blocks that stand in messages.
type visible struct {
	blocks map[Key]seenBlock
	many   map[string]int // how many different texts each label is the name of
}

// seenBlock is a text under a label.
type seenBlock struct {
	label, text string
	content     content
}

// has reports whether the block stands there.
func (v *visible) has(k Key) bool {
	_, ok := v.blocks[k]
	return ok
}

// visibleIn returns the blocks that stand in the texts, in one pass.
func visibleIn(texts []string) (v visible) {
	for _, t := range texts {
		for r := range markup.Regions(t) {
			if v.blocks == nil {
				v = visible{blocks: map[Key]seenBlock{}, many: map[string]int{}}
			}
			c := contentOf(r.Text)
			k := keyOf(r.Label, c)
			if x, ok := v.blocks[k]; !ok {
				v.blocks[k] = seenBlock{r.Label, r.Text, c}
				v.many[r.Label]++
			} else if x.label != r.Label || x.text != r.Text { // two of one key
				v.many[r.Label]++
			}
		}
	}
	return v
}
