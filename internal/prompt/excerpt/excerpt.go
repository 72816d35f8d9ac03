// Package excerpt finds the sentences of a text that say most about a question.
package excerpt

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestRead bounds the bytes of a block that an excerpt is taken from: it is made while the scope's lock is held.
const longestRead = 16 << 10

// Of returns the run of whole sentences of a text with at most limit tokens that has most of the question's words; a word that
// many sentences have counts less. Of equals it is the first that begins with most of them. A sentence that is too long alone is cut behind
// a word. Linear in the length of the text.
func Of(text, question string, limit int, count func(string) int) string {
	for end := longestRead; len(text) > longestRead; end-- {
		if utf8.RuneStart(text[end]) || end == longestRead-utf8.UTFMax {
			text = text[:end]
		}
	}
	all := sentences(text, words(question), count)
	w := window{in: map[string]int{}, weights: weigh(all)}
	best, most := "", -1
	for from := range all {
		for w.to < len(all) && w.tokens+all[w.to].tokens <= limit {
			w.change(&all[w.to], 1)
			w.to++
		}
		first := w.weights.of(all[from].asked)
		run, worth := "", w.worth
		if w.to == from {
			run = cutWords(text[all[from].start:all[from].end], limit, count)
			for word := range words(run) {
				worth += w.weights[word]
			}
		}
		// Of runs with the same words, the one that begins with most of them.
		if value := 2*worth + first; value > most && (run != "" || w.to > from) {
			if w.to > from {
				run = text[all[from].start:all[w.to-1].end]
			}
			best, most = run, value
		}
		if w.to > from {
			w.change(&all[from], -1)
		} else {
			w.to++
		}
	}
	return Cut(best, limit, count) // a tokenizer may make more of a text than of its parts
}

// Cut returns a text of more than limit tokens up to a space in front of which it has no more, "" if the first word has more.
func Cut(text string, limit int, count func(string) int) string {
	if count(text) <= limit {
		return text
	}
	return cutWords(text, limit, count)
}

// window is a run of sentences that moves over a text.
type window struct {
	to      int // behind the last one
	tokens  int
	in      map[string]int // how many of its sentences have a word
	weights wordWeights
	worth   int // weights of the words that are in
}

// change takes a sentence in, or with −1 out.
func (w *window) change(s *sentence, by int) {
	w.tokens += by * s.tokens
	for _, word := range s.asked {
		if w.in[word] += by; by > 0 && w.in[word] == 1 || by < 0 && w.in[word] == 0 {
			w.worth += by * w.weights[word]
		}
	}
}

// wordWeights are the weights of a question's words: each is divided by the number of sentences that have it.
type wordWeights map[string]int

func weigh(all []sentence) wordWeights {
	const unit = 1 << 16
	in := wordWeights{}
	for i := range all {
		for _, word := range all[i].asked {
			in[word]++
		}
	}
	for word, n := range in {
		in[word] = max(unit/n, 1)
	}
	return in
}

func (w wordWeights) of(words []string) (sum int) {
	for _, word := range words {
		sum += w[word]
	}
	return sum
}

// cutWords returns the beginning of a text up to a space, with at most limit tokens; "" if the first word has more.
func cutWords(text string, limit int, count func(string) int) string {
	var ends []int // of words
	for i, r := range text {
		if unicode.IsSpace(r) {
			ends = append(ends, i)
		}
	}
	n := sort.Search(len(ends), func(i int) bool { return count(text[:ends[i]]) > limit })
	if n == 0 {
		return ""
	}
	return strings.TrimSpace(text[:ends[n-1]])
}

// words are the words of a text in lower case, without very short ones.
func words(text string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(w) > 2 {
			out[w] = true
		}
	}
	return out
}

// sentence is text[start:end], without white space around it.
type sentence struct {
	start, end int
	tokens     int // with the white space in front of the next one
	asked      []string
}

// sentences returns the sentences of a text, with those words of them that are asked for.
func sentences(text string, asked map[string]bool, count func(string) int) (all []sentence) {
	start := 0
	end := func(at int) {
		if s := strings.TrimSpace(text[start:at]); s != "" {
			first := start + strings.Index(text[start:at], s)
			all = append(all, sentence{start: first, end: first + len(s)})
		}
		start = at
	}
	for i, r := range text {
		next := i + len(string(r))
		if r == '\n' || strings.ContainsRune("。！？", r) ||
			strings.ContainsRune(".!?", r) && (next == len(text) || text[next] == ' ' || text[next] == '\n') {
			end(next)
		}
	}
	end(len(text))
	for i := range all {
		s := &all[i]
		next := s.end
		if i+1 < len(all) {
			next = all[i+1].start
		}
		s.tokens = count(text[s.start:next])
		for word := range words(text[s.start:s.end]) {
			if asked[word] {
				s.asked = append(s.asked, word)
			}
		}
	}
	return all
}
