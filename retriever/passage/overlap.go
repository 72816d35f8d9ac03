package passage

import "strings"

// MinOverlap is the number of bytes from which on an end that equals a beginning counts as overlap, if the order of the
// chunks is known; of chunks with adjoining numbers whole sentences count from 2 bytes on. [MinOverlapUnplaced] is that
// for chunks whose places are not known.
const (
	MinOverlap         = 16
	MinOverlapUnplaced = 32
)

// overlap returns the length of the longest end of a that is a beginning of b and shorter than both; 0 if it is
// shorter than MinOverlap. It takes linear time.
func overlap(a, b string) int {
	if len(a) <= MinOverlap || len(b) <= MinOverlap {
		return 0
	}
	a = a[max(1, len(a)-len(b)+1):]
	// Nearly always the first place where the beginning stands is the overlap. Only texts that repeat themselves need
	// the automaton.
	const tries = 4
	for range tries {
		i := strings.Index(a, b[:MinOverlap])
		if i < 0 {
			return 0
		}
		a = a[i:]
		if strings.HasPrefix(b, a) {
			return len(a)
		}
		a = a[1:]
	}
	if n := longestBorder(a, b); n >= MinOverlap {
		return n
	}
	return 0
}

// shortOverlap is overlap for less than MinOverlap bytes. Of neighbours it is believed if it is whole sentences in both.
func shortOverlap(a, b string) int {
	for n := min(MinOverlap, len(a), len(b)) - 1; n > 1; n-- {
		if a[len(a)-n:] == b[:n] && begins(a, len(a)-n) && begins(b, skipSpace(b, n)) && endsWithMark(strings.TrimSpace(b[:n])) {
			return n
		}
	}
	return 0
}

// begins reports whether a sentence begins at a place inside a text.
func begins(text string, at int) bool {
	_, ok := sentenceStart(text, at, min(at+1, len(text)))
	return ok
}

// longestBorder returns the length of the longest end of a that is a beginning of b, by the automaton of Knuth, Morris
// and Pratt.
func longestBorder(a, b string) int {
	b = b[:min(len(a), len(b))]
	if b == "" {
		return 0
	}
	fall := make([]int32, len(b)) // the longest border of b[:i+1]
	for i, n := 1, int32(0); i < len(b); i++ {
		for n > 0 && b[i] != b[n] {
			n = fall[n-1]
		}
		if b[i] == b[n] {
			n++
		}
		fall[i] = n
	}
	n := 0
	for i := range len(a) {
		for n > 0 && (n == len(b) || a[i] != b[n]) {
			n = int(fall[n-1])
		}
		if a[i] == b[n] {
			n++
		}
	}
	return n
}

// holds reports whether a text of some length stands in another one.
func holds(a, b string) bool {
	return len(b) >= MinOverlap && len(b) <= len(a) && strings.Contains(a, b)
}
