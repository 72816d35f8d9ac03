package doctor

import (
	"fmt"
	"io"
	"strings"
)

// Result is the outcome of a check.
type Result string

// The results. A problem is what must be changed before anything is reused, measured or heard; a warning is what costs
// something, or may be meant. NotKnown is no finding at all: nothing was asked, or nothing was answered.
const (
	OK       Result = "ok"
	Warning  Result = "warning"
	Problem  Result = "problem"
	NotKnown Result = "not known"
)

// Check is one thing that was looked at.
type Check struct {
	Name   string `json:"check"`
	Result Result `json:"result"`
	Saw    string `json:"saw"`          // what was seen, with its values
	Do     string `json:"do,omitempty"` // what to change; empty: nothing
}

// Sent counts what was asked of the model.
type Sent struct {
	Prompts int `json:"prompts"`
	Tokens  int `json:"tokens"` // of these prompts, as the engine counts them; those it does not count are estimated
	Answer  int `json:"answer"` // the most tokens that each answer may have
}

// Report is what was found out.
type Report struct {
	Engine  string  `json:"engine"` // the URL, without a password
	Kind    Kind    `json:"kind"`
	Version string  `json:"version,omitempty"`
	Sent    Sent    `json:"sent"`
	Checks  []Check `json:"checks"`
}

// Count returns how many checks have a result.
func (r *Report) Count(result Result) int {
	n := 0
	for i := range r.Checks {
		if r.Checks[i].Result == result {
			n++
		}
	}
	return n
}

// Print writes the report as a table.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "engine  %s\nserver  %s\nsent    %s\n\n", r.Engine, strings.TrimSpace(r.Kind.String()+" "+r.Version), r.Sent)
	width := len("check")
	for i := range r.Checks {
		width = max(width, len(r.Checks[i].Name))
	}
	fmt.Fprintf(&b, "%-9s  %-*s  %s\n", "result", width, "check", "what was seen")
	for i := range r.Checks {
		c := &r.Checks[i]
		fmt.Fprintf(&b, "%-9s  %-*s  %s\n", c.Result, width, c.Name, c.Saw)
		if c.Do != "" {
			fmt.Fprintf(&b, "%*s→ %s\n", 9+2+width+2, "", c.Do)
		}
	}
	fmt.Fprintf(&b, "\n%d ok, %d warnings, %d problems, %d not known\n", r.Count(OK), r.Count(Warning), r.Count(Problem), r.Count(NotKnown))
	_, err := io.WriteString(w, b.String())
	return err
}

// String says what was sent, in words.
func (s Sent) String() string {
	if s.Prompts == 0 {
		return "no prompts"
	}
	return fmt.Sprintf("%d made-up prompts, %d tokens together, answers of at most %d token", s.Prompts, s.Tokens, s.Answer)
}
