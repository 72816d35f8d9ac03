package eval

import "strings"

// needle asks for the codes of one thing.
func (t *tasks) needle(row *Row) {
	names, codes := distinct(), distinct()
	name := func() string { return names(func() string { return ship(t.r) }) }
	code := func() string { return codes(func() string { return number(t.r) + number(t.r)[1:] }) } // seven digits
	lead := func(name string) string {
		if t.o.Task == NeedleValues {
			return "One code of " + name + " is"
		}
		return "The code of " + name + " is"
	}
	statements := make([][]string, t.o.K)
	if t.o.Task == NeedleKeys {
		for i := range statements {
			for range keysPerBlock {
				statements[i] = append(statements[i], lead(name())+" "+code()+".")
			}
		}
	}
	asked, values := name(), 1
	if t.o.Task == NeedleValues {
		values = min(valuesOfNeedle, t.o.K)
	}
	answer := make([]string, 0, values)
	gold := t.ranks(values)
	for _, at := range gold {
		value := code()
		answer = append(answer, value)
		sentence := lead(asked) + " " + value + "."
		if n := len(statements[at]); n > 0 {
			statements[at][t.r.below(n)] = sentence
		} else {
			statements[at] = []string{sentence}
		}
	}
	row.Question, row.Lead = "What is the code of "+asked+"?", lead(asked)
	if t.o.Task == NeedleValues {
		row.Question, row.Lead = "Which codes does "+asked+" have?"+listed, "The codes of "+asked+" are"
	}
	row.Answers = []string{strings.Join(answer, ", ")}
	t.write(row, statements, gold)
}

// distinct returns a function that draws until there is something new.
func distinct() func(draw func() string) string {
	taken := map[string]bool{}
	return func(draw func() string) string {
		for {
			if s := draw(); !taken[s] {
				taken[s] = true
				return s
			}
		}
	}
}
