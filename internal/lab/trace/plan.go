package trace

import (
	"errors"
	"fmt"
	"io"
	"iter"
)

// Plan is the line of a plan file that says how one request was sent.
type Plan struct {
	ID      string   `json:"id"`
	Session string   `json:"session"` // "" when a file that was read does not give it
	Turn    int      `json:"turn"`    // 0 when a file that was read does not give it
	Docs    []string `json:"docs"`    // block IDs kept, in prompt order
	Refs    []string `json:"refs"`    // block IDs replaced by a reference to an earlier turn
	Hint    string   `json:"hint"`    // text put in front of the question, without a line end
}

// PlanReader reads a plan one line at a time. It checks each line and that no request comes twice; whether a plan
// fits its trace is for the caller to know.
type PlanReader struct {
	lines  *lines
	lineOf map[string]int // request ID -> line
}

// NewPlanReader returns a PlanReader of r. The name stands for the file in errors.
func NewPlanReader(r io.Reader, name string) *PlanReader {
	return &PlanReader{lines: newLines(r, name), lineOf: map[string]int{}}
}

// LoadPlan reads a whole plan file; path may end in ".gz" or be "-".
func LoadPlan(path string) ([]Plan, error) {
	l, err := openLines(path)
	if err != nil {
		return nil, err
	}
	r := &PlanReader{lines: l, lineOf: map[string]int{}}
	var plan []Plan
	for p, err := range r.All() {
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
		plan = append(plan, p)
	}
	return plan, l.close()
}

// Next returns the next line, io.EOF after the last one. After an error Next keeps returning it.
func (r *PlanReader) Next() (Plan, error) {
	p, err := nextObject(r.lines, parsePlan)
	if err != nil {
		return Plan{}, err
	}
	if n, ok := r.lineOf[p.ID]; ok {
		return Plan{}, r.lines.fail(fmt.Errorf("request %q: occurs twice, first on line %d", p.ID, n))
	}
	r.lineOf[p.ID] = r.lines.n
	return p, nil
}

// All walks the lines that are left; it ends after the first error.
func (r *PlanReader) All() iter.Seq2[Plan, error] { return all(r.Next) }

func parsePlan(o object) (Plan, error) {
	var p Plan
	var err error
	if p.ID, err = o.id("id"); err != nil {
		return p, err
	}
	wrap := func(err error) (Plan, error) { return p, fmt.Errorf("request %q: %w", p.ID, err) }
	if _, ok := o["session"]; ok {
		if p.Session, err = o.id("session"); err != nil {
			return wrap(err)
		}
	}
	if p.Turn, err = o.turn(0); err != nil {
		return wrap(err)
	}
	if p.Docs, err = o.ids("docs", true); err != nil {
		return wrap(err)
	}
	if p.Refs, err = o.ids("refs", false); err != nil {
		return wrap(err)
	}
	if id, twice := repeated(p.Docs, p.Refs); twice {
		return wrap(fmt.Errorf("document %q occurs twice in docs and refs", id))
	}
	if p.Hint, err = o.optionalText("hint"); err != nil {
		return wrap(err)
	}
	return p, nil
}
