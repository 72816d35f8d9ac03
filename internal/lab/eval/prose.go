package eval

import (
	"slices"
	"strings"
)

// prose is a sentence without facts.
func prose(r *random) string {
	return pick(r, words().Subjects) + " " + pick(r, words().Predicates) + " " + pick(r, words().Circumstances) + "."
}

// page writes a text of nearly so many tokens, and not more, of four bytes each: an opening, which may be empty, and behind it
// statements, in their order, among sentences without facts.
func page(r *random, tokens int, opening string, statements ...string) string {
	limit := 4 * tokens // bytes
	length := len(opening) + len(strings.Join(statements, " ")) + 1
	var fill []string
	for misses := 0; misses < 12; {
		s := prose(r)
		if length+1+len(s) > limit {
			misses++
			continue
		}
		fill, length = append(fill, s), length+1+len(s)
	}
	places := r.permutation(len(fill) + len(statements))[:len(statements)]
	slices.Sort(places)
	body := fill
	for i, at := range places {
		body = slices.Insert(body, at, statements[i])
	}
	if opening != "" {
		body = slices.Insert(body, 0, opening)
	}
	return strings.Join(body, " ")
}
