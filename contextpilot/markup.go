package contextpilot

import (
	"slices"

	"github.com/ragpilot/ragpilot/internal/markup"
	"github.com/ragpilot/ragpilot/internal/notes"
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

// region is a rendered block that was found in a text.
type region = markup.Region

// visible are the blocks that stand in messages.
type visible struct {
	texts map[named]string
	many  map[string]int // how many different texts each label is the name of
}

// named is a text under a label.
type named struct {
	label   string
	content content
}

// has reports whether the block stands there.
func (v *visible) has(label string, c content) bool {
	_, ok := v.texts[named{label, c}]
	return ok
}

// only reports whether the block stands there, and no other text under its label.
func (v *visible) only(label, text string, c content) bool {
	there, ok := v.texts[named{label, c}]
	return ok && there == text && v.many[label] == 1
}

// visibleIn returns the blocks that stand in the texts, in one pass.
func visibleIn(texts []string) (v visible) {
	for _, t := range texts {
		for r := range markup.Regions(t) {
			if v.texts == nil {
				v = visible{texts: map[named]string{}, many: map[string]int{}}
			}
			if x := (named{r.Label, contentOf(r.Text)}); !v.has(x.label, x.content) {
				v.texts[x] = r.Text
				v.many[r.Label]++
			}
		}
	}
	return v
}
