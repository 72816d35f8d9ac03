package eval

import (
	"slices"
	"strings"
)

// variables asks which variables have a value. Each takes it from the one before, and the statements stand in that order as the blocks
// were retrieved; a second chain has another value.
func (t *tasks) variables(row *Row) {
	names, values := distinct(), distinct()
	statements := make([][]string, t.o.K)
	gold := t.ranks(min(variablesPerChain, t.o.K))
	for chain := range chains {
		places := gold
		if chain > 0 {
			places = t.r.permutation(t.o.K)[:len(gold)]
			slices.Sort(places)
		}
		value := values(func() string { return number(t.r) + pick(t.r, digits) })
		all := make([]string, 0, variablesPerChain)
		from := value
		for i := range variablesPerChain {
			name := names(func() string {
				var b strings.Builder
				for range 5 {
					b.WriteString(pick(t.r, letters))
				}
				return b.String()
			})
			at := places[i*len(places)/variablesPerChain]
			statements[at] = append(statements[at], "Set "+name+" to "+from+".")
			all, from = append(all, name), name
		}
		if chain == 0 {
			row.Question, row.Lead = "Which variables have the value "+value+"?"+listed, "The variables with the value "+value+" are"
			row.Answers = []string{strings.Join(all, ", ")}
		}
	}
	t.write(row, statements, gold)
}

var digits = strings.Split("0123456789", "")
