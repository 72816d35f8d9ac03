package trace

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// Plan is the line of a plan file that says how one request was sent.
type Plan struct {
	ID      string   `json:"id"`
	Session string   `json:"session"` // "" when a file that was read does not give it
	Turn    int      `json:"turn"`    // 0 when a file that was read does not give it
	Docs    []string `json:"docs"`    // block IDs kept, in prompt order
	Refs    []string `json:"refs"`    // block IDs replaced by a reference to an earlier turn
	// Echo are block IDs of Docs that are sent once more in front of Hint, and EchoText the part of each that is, if it is not the whole.
	Echo     []string          `json:"echo,omitempty"`
	EchoText map[string]string `json:"echo_text,omitempty"`
	Hint     string            `json:"hint"` // text put in front of the question, without a line end
}

// LoadPlan reads a whole plan file; path may end in ".gz" or be "-".
func LoadPlan(path string) ([]Plan, error) {
	l, err := openLines(path)
	if err != nil {
		return nil, err
	}
	plan, err := readPlan(l)
	return plan, errors.Join(err, l.close())
}

// ReadPlan reads a plan from r to its end, or to the first line that is wrong. The name stands for the file in errors. It checks each
// line and that no request comes twice; whether the plan fits its trace is for the caller to know.
func ReadPlan(r io.Reader, name string) ([]Plan, error) { return readPlan(newLines(r, name)) }

func readPlan(l *lines) (plan []Plan, err error) {
	lineOf := map[string]int{} // request ID -> line
	for {
		p, err := nextObject(l, parsePlan)
		if errors.Is(err, io.EOF) {
			return plan, nil
		}
		if err != nil {
			return plan, err
		}
		if n, ok := lineOf[p.ID]; ok {
			return plan, l.fail(fmt.Errorf("request %q: occurs twice, first on line %d", p.ID, n))
		}
		lineOf[p.ID] = l.n
		plan = append(plan, p)
	}
}

func parsePlan(m *members) Plan {
	p := Plan{ID: m.name("request")}
	p.Session, p.Turn, p.Docs, p.Refs = m.session(""), m.turn(0), m.ids("docs", true), m.ids("refs", false)
	if id, twice := repeated(p.Docs, p.Refs); twice {
		m.fail("document %q occurs twice in docs and refs", id)
	}
	p.Echo, p.EchoText = m.ids("echo", false), m.texts("echo_text")
	if id, twice := repeated(p.Echo, nil); twice {
		m.fail("document %q occurs twice in echo", id)
	}
	for _, id := range p.Echo {
		if !slices.Contains(p.Docs, id) {
			m.fail("document %q is in echo, but not in docs", id)
		}
	}
	for id := range p.EchoText {
		if !slices.Contains(p.Echo, id) {
			m.fail("document %q is in echo_text, but not in echo", id)
		}
	}
	p.Hint = m.optionalText("hint")
	return p
}
