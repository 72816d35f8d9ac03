package eval

import (
	"fmt"
	"slices"
	"strings"
)

// common asks for the words that are most frequent in lists, one list a block: half of all words are the common ones, and each of them
// stands there ten times as often as another word, or as nearly as the lengths allow.
func (t *tasks) common(row *Row) {
	lists := listWords()
	order := t.r.permutation(len(lists))
	twice := 0 // the mean lengths of both halves with comma and space, added, times commonWords·len(order)
	for _, i := range order[:commonWords] {
		twice += (len(lists[i]) + 2) * len(order)
	}
	for _, w := range lists {
		twice += (len(w) + 2) * commonWords
	}
	inBlock := 4 * t.o.BlockTokens * 2 * commonWords * len(order) / twice
	total := inBlock * t.o.K
	often := total / (2 * commonWords)
	seldom := max(1, often/commonRatio)
	var all []string
	for _, i := range order[:commonWords] {
		all = append(all, slices.Repeat([]string{lists[i]}, often)...)
	}
	others := order[commonWords:][:min((total-len(all))/seldom, len(order)-commonWords)]
	for i := 0; len(all) < total; i++ {
		all = append(all, lists[others[i%len(others)]])
	}
	mixed := shuffled(t.r, all)
	var first []string // the common words as they come first
	for _, w := range mixed {
		if len(first) == commonWords {
			break
		}
		if !slices.Contains(first, w) && slices.Contains(order[:commonWords], slices.Index(lists, w)) {
			first = append(first, w)
		}
	}
	for i := range t.o.K {
		id := fmt.Sprintf("%s-%d", row.ID, i+1)
		row.Blocks = append(row.Blocks, Block{ID: id, Text: "Words: " + strings.Join(mixed[i*inBlock:][:inBlock], ", ") + "."})
		row.Gold = append(row.Gold, id)
	}
	row.Question = fmt.Sprintf("Which %d words are the most frequent in all lists together?%s", commonWords, listed)
	row.Lead, row.Answers = "The most frequent words are", []string{strings.Join(first, ", ")}
}
