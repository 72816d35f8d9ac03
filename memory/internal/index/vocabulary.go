package index

import "strings"

// maxWords bounds a vocabulary: numbers have 24 bits beside a count in 8. Words beyond it are not found.
const maxWords = 1<<24 - 1

// vocabulary numbers words.
type vocabulary struct {
	of    map[string]int32
	words []string
	size  int64 // bytes of the words
}

func newVocabulary() vocabulary { return vocabulary{of: map[string]int32{}} }

// number returns the number of a word, which it may be given now; ok is false if the vocabulary is full.
func (v *vocabulary) number(word string) (n int32, ok bool) {
	n, ok = v.of[word]
	if ok || len(v.words) >= maxWords {
		return n, ok
	}
	n = int32(len(v.words))    //nolint:gosec // at most maxWords
	word = strings.Clone(word) // it may be a part of a longer text, which would be kept with it
	v.of[word] = n
	v.words = append(v.words, word)
	v.size += int64(len(word))
	return n, true
}

// appendNumbers appends the numbers of words. Those that the vocabulary has no room for are left out.
func (v *vocabulary) appendNumbers(to []int32, words []string) []int32 {
	for _, w := range words {
		if n, ok := v.number(w); ok {
			to = append(to, n)
		}
	}
	return to
}

func (v *vocabulary) bytes() int64 {
	const each = 16 + 40 // the string's header, and an entry of the map
	return int64(len(v.words))*each + v.size
}
