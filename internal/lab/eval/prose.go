package eval

import (
	"slices"
	"strings"
)

// The parts of sentences that state no fact. They have no digits and none of the words that rows ask for.
var (
	subjects = []string{
		"The corridor", "The notice board", "The back entrance", "The upper hall", "The reading room", "The weekly meeting", "The old lift",
		"The car park", "The visitor desk", "The storage room", "The main staircase", "The annual survey", "The side street", "The small balcony",
		"The morning shift", "The spare office", "The long table", "The heating", "The printed schedule", "The outer wall",
	}
	predicates = []string{
		"was repainted", "stayed empty", "needed no repair", "drew little attention", "was mentioned twice", "remained as it was", "was moved a little",
		"caused no delay", "was closed", "was checked by two people", "looked the same", "was discussed at length", "was left alone", "was busier than usual",
		"was described in detail", "gave no reason for concern", "was opened again", "changed hands", "was cleaned thoroughly", "went unnoticed",
	}
	circumstances = []string{
		"for most of the week", "after the holidays", "without any announcement", "before the first snow", "on a quiet afternoon", "during the inspection",
		"in spite of the rain", "until the end of the month", "as in earlier years", "a few days later", "to general surprise", "at the usual time",
		"while the others waited", "in the second half of the year", "for no clear reason", "once more",
	}
)

// prose is a sentence without facts.
func prose(r *random) string {
	return pick(r, subjects) + " " + pick(r, predicates) + " " + pick(r, circumstances) + "."
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
