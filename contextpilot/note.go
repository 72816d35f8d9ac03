package contextpilot

import (
	"fmt"
	"strconv"
	"strings"
)

// Default wordings, after ContextPilot §5.3 and §6.
const (
	DefaultOrderNote    = "Please read the context in the following priority order: {order} and answer the question."
	DefaultLocationNote = "Please refer to [{label}] in the previous conversation."
)

// Notes words what is told to the model beside the blocks. Notes stand behind the blocks, so that they never
// break a shared prefix. The zero value is the default.
type Notes struct {
	// Order tells the retriever's ranking when the blocks are sent in another order; {order} stands for the
	// labels, best first: "[a] > [b]". Empty: DefaultOrderNote.
	Order string
	// Location stands for a block that was shown in an earlier turn; {label} is the name it was shown under and
	// {turn} the number of that turn. Empty: DefaultLocationNote.
	Location string
	// NoOrder and NoLocation leave a note out; a block whose location note is left out is still listed in the plan.
	NoOrder, NoLocation bool
	// AfterQuestion puts the order note behind the question instead of before it.
	AfterQuestion bool
}

func (n Notes) withDefaults() (Notes, error) {
	if n.Order == "" {
		n.Order = DefaultOrderNote
	}
	if n.Location == "" {
		n.Location = DefaultLocationNote
	}
	if err := placeholders("Notes.Order", n.Order, "order"); err != nil {
		return n, err
	}
	return n, placeholders("Notes.Location", n.Location, "label", "turn")
}

// placeholders checks that a template uses the known placeholders only, and the first of them at least once.
func placeholders(field, template string, known ...string) error {
	if strings.ContainsAny(template, "\n\r") || hasMarkup(template) || opensMarkup(template) {
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

func (n Notes) order(labels []string) string {
	var b strings.Builder
	for i, l := range labels {
		if i > 0 {
			b.WriteString(" > ")
		}
		b.WriteByte('[')
		b.WriteString(l)
		b.WriteByte(']')
	}
	return strings.ReplaceAll(n.Order, "{order}", b.String())
}

func (n Notes) location(r Ref) string {
	s := n.Location
	if strings.Contains(s, "{turn}") {
		s = strings.ReplaceAll(s, "{turn}", strconv.Itoa(r.Turn))
	}
	return strings.ReplaceAll(s, "{label}", r.Label)
}
