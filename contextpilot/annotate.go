package contextpilot

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ragpilot/ragpilot/internal/prompt/markup"
	"github.com/ragpilot/ragpilot/internal/prompt/notes"
)

// Hint says which part of the retriever's ranking the order note states.
type Hint uint8

const (
	// HintAuto is the default: HintNone with [TopNear], which shows where the best block is, else HintTop.
	HintAuto Hint = iota
	// HintTop names the best blocks only, see Notes.Top.
	HintTop
	// HintFull names all blocks, as in ContextPilot §5.3. With many blocks it costs more than the order gains.
	HintFull
	// HintDisplaced names the blocks, of the best, that stand further back than the retriever ranked them.
	HintDisplaced
	// HintNone writes no order note.
	HintNone
)

// Notes words the sentences that the model reads beside the blocks. They stand behind the blocks, so that they never
// break a shared prefix. The zero value is the default.
type Notes struct {
	// Hint chooses the form of the order note, which is added when the blocks are sent in another order than
	// retrieved and the request is expected to save more tokens by that than the note costs.
	Hint Hint
	// Top is the number of blocks that HintTop and HintDisplaced name at most. 0: DefaultTop.
	Top int
	// Tokens is what such a note may cost: fewer blocks are named, but one at least, where labels are long.
	// 0: DefaultNoteTokens.
	Tokens int
	// AlwaysHint adds the order note whether it pays or not.
	AlwaysHint bool
	// Order words HintFull and TopOrder the other forms; {order} stands for the labels, best first: "[a] > [b]".
	// Empty: DefaultOrderNote, DefaultTopNote.
	Order, TopOrder string
	// Location stands for a block that was shown in an earlier turn; {label} is the name it was shown under and
	// {turn} the number of that turn. Empty: DefaultLocationNote.
	Location string
	// NoLocation leaves the location notes out; the blocks are still listed in the plan.
	NoLocation bool
	// AfterQuestion puts the order note behind the question instead of before it.
	AfterQuestion bool
}

func (n Notes) withDefaults() (Notes, error) {
	if n.Order == "" {
		n.Order = DefaultOrderNote
	}
	if n.TopOrder == "" {
		n.TopOrder = DefaultTopNote
	}
	if n.Location == "" {
		n.Location = DefaultLocationNote
	}
	if n.Hint > HintNone {
		return n, fmt.Errorf("%w: Notes.Hint %d", ErrBadConfig, n.Hint)
	}
	if n.Top < 0 {
		return n, fmt.Errorf("%w: Notes.Top %d is negative", ErrBadConfig, n.Top)
	}
	if n.Tokens < 0 {
		return n, fmt.Errorf("%w: Notes.Tokens %d is negative", ErrBadConfig, n.Tokens)
	}
	n.Top = cmp.Or(n.Top, DefaultTop)
	n.Tokens = cmp.Or(n.Tokens, DefaultNoteTokens)
	if err := placeholders("Notes.Order", n.Order, "order"); err != nil {
		return n, err
	}
	if err := placeholders("Notes.TopOrder", n.TopOrder, "order"); err != nil {
		return n, err
	}
	return n, placeholders("Notes.Location", n.Location, "label", "turn")
}

// placeholders checks that a template uses the known placeholders only, and the first of them at least once.
func placeholders(field, template string, known ...string) error {
	if strings.ContainsAny(template, "\n\r") || markup.In(template) || opensMarkup(template) {
		return fmt.Errorf("%w: %s %q: must be one line without block markup", ErrBadConfig, field, template)
	}
	if !strings.Contains(template, "{"+known[0]+"}") {
		return fmt.Errorf("%w: %s %q: lacks {%s}", ErrBadConfig, field, template, known[0])
	}
	rest := template
	for _, k := range known {
		rest = strings.ReplaceAll(rest, "{"+k+"}", "")
	}
	if i := strings.IndexByte(rest, '{'); i >= 0 {
		return fmt.Errorf("%w: %s %q: unknown placeholder at %q", ErrBadConfig, field, template, rest[i:])
	}
	return nil
}

// opensMarkup looks for the beginning of a tag that a placeholder's value could complete, as in "</d{label}".
func opensMarkup(template string) bool {
	for _, s := range strings.Split(template, "<")[1:] {
		head, _, found := strings.Cut(strings.TrimPrefix(s, "/"), "{")
		if found && len(head) < 3 && strings.EqualFold(head, "doc"[:len(head)]) {
			return true
		}
	}
	return false
}

// hint returns the order note of a draft with items and its tokens, "" if there is nothing to state.
func (n Notes) hint(d *draft, count func(string) int) (text string, tokens int) {
	if n.Hint == HintNone || !d.plan.Reordered() {
		return "", 0
	}
	ranked := slices.Clone(d.plan.Items)
	slices.SortFunc(ranked, func(a, b Item) int { return a.Index - b.Index })
	if n.Hint == HintFull {
		text = naming(n.Order, ranked)
		return text, count(text)
	}
	ranked = ranked[:min(len(ranked), n.Top)]
	if n.Hint == HintDisplaced {
		ranked = displaced(ranked, d.plan.Items)
	}
	for ; len(ranked) > 0; ranked = ranked[:len(ranked)-1] {
		text = naming(n.TopOrder, ranked)
		if tokens = count(text); tokens <= n.Tokens {
			break
		}
	}
	return text, tokens
}

// displaced returns those of the ranked items that stand further back than they rank.
func displaced(ranked, sent []Item) []Item {
	out := ranked[:0]
	for rank, it := range ranked {
		if slices.IndexFunc(sent, func(x Item) bool { return x.Index == it.Index }) > rank {
			out = append(out, it)
		}
	}
	return out
}

// naming fills a template with the labels of the items.
func naming(template string, items []Item) string {
	var b strings.Builder
	for i, it := range items {
		if i > 0 {
			b.WriteString(" > ")
		}
		label := it.Label
		if it.Ref != nil {
			label = it.Ref.Label
		}
		b.WriteByte('[')
		b.WriteString(label)
		b.WriteByte(']')
	}
	return strings.ReplaceAll(template, "{order}", b.String())
}

func (n Notes) location(r Ref) string {
	s := n.Location
	if strings.Contains(s, "{turn}") {
		s = strings.ReplaceAll(s, "{turn}", strconv.Itoa(r.Turn))
	}
	return strings.ReplaceAll(s, "{label}", r.Label)
}

// noteForms are the forms of the notes that a pilot writes.
type noteForms []notes.Form

func formsOf(n Notes) noteForms {
	return noteForms{notes.FormOf(n.Order, "order"), notes.FormOf(n.TopOrder, "order"), notes.FormOf(n.Location, "order")}
}

// renderBlock returns the block as it stands in a prompt, with its line feed. A text that has what has the form of a note is fenced,
// so that it cannot stand outside as a reference.
func renderBlock(forms noteForms, label, text string) string {
	return markup.Render(label, text, forms.in(text))
}

// in reports whether a text has the form of a note.
func (n noteForms) in(text string) bool {
	return slices.ContainsFunc(n, func(f notes.Form) bool { return f.In(text) })
}

// annotate adds the notes. The order note costs tokens now, while the order may pay later only: it is added if what
// this request is expected to read from the cache, beyond what retrieval order would, exceeds it.
func (p *Pilot) annotate(d *draft) error {
	n := p.cfg.Notes
	d.plan.Hint = ""
	d.items()
	if !n.NoLocation {
		for _, it := range d.refs {
			it.Ref.Note = n.location(*it.Ref)
		}
	}
	d.plan.afterQuestion = n.AfterQuestion
	if text, tokens := n.hint(d, p.cfg.Tokenizer.Count); text != "" && (n.AlwaysHint || d.gain > tokens) && d.admits(text,
		p.cfg.Tokenizer.Count) {
		d.plan.Hint = text
	}
	if d.plan.Hint != "" || d.plan.Echo != nil || len(d.refs) > 0 && !n.NoLocation {
		d.closeWith(d.plan.closing(), p.cfg.Tokenizer.Count)
	}
	return nil
}

// items writes the order and the references into the plan.
func (d *draft) items() {
	d.plan.Items = make([]Item, 0, len(d.order)+len(d.refs))
	for _, i := range d.order {
		d.plan.Items = append(d.plan.Items, Item{Index: i, Label: d.ids[i].label})
	}
	d.plan.Items = append(d.plan.Items, d.refs...)
}
