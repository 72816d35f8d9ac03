package history

import "strings"

// shorten returns whole lines, or words of one, from the beginning of text that have at most limit tokens, ended by an
// empty line.
func shorten(text string, limit int, count func(string) int) string {
	if count(text) <= limit {
		return text
	}
	words := strings.Fields(text)
	low, high := 0, len(words) // words[:low] fit, words[:high] do not
	for low+1 < high {
		if mid := (low + high) / 2; count(asLines(strings.Join(words[:mid], " "))) <= limit {
			low = mid
		} else {
			high = mid
		}
	}
	return asLines(strings.Join(words[:low], " "))
}
