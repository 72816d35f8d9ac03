package volatile

import "strings"

// uuid reports whether a word is a UUID.
func uuid(w string) bool {
	if len(w) != 36 {
		return false
	}
	for i := range len(w) {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if w[i] != '-' {
				return false
			}
		} else if !hex(w[i]) {
			return false
		}
	}
	return true
}

func hex(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

// identifier reports whether a word looks drawn at random: hexadecimal digits, or letters and digits that take turns as they
// do in no word.
func identifier(w string) bool {
	letters, numbers, hexes, upper, lower, turns := 0, 0, 0, 0, 0, 0
	last := 0
	for i := range len(w) {
		c, class := w[i], 0
		switch {
		case c >= '0' && c <= '9':
			numbers++
			class = 1
		case c >= 'a' && c <= 'z':
			letters++
			lower++
			class = 2
		case c >= 'A' && c <= 'Z':
			letters++
			upper++
			class = 3
		case c == '-' || c == '_' || c == '+' || c == '/':
		default:
			return false
		}
		if hex(c) {
			hexes++
		}
		if class != 0 && last != 0 && class != last {
			turns++
		}
		last = class
	}
	n := letters + numbers
	if n >= 5 && lower == 0 && upper > 1 && numbers > 1 && turns >= 2 && len(w) <= 16 { // A93-XK2
		return true
	}
	if hexes == n && n >= 12 && numbers > 0 && letters > 0 && (upper == 0 || lower == 0) { // 270188ad-3979-4084
		return true
	}
	switch {
	case n != len(w) && strings.Count(w, "-")+strings.Count(w, "_") > 4:
		return false
	case hexes == len(w) && n >= 8 && numbers > 0 && letters > 0 && (upper == 0 || lower == 0):
		return true
	case n < 8 || numbers == 0 || letters == 0:
		return n >= 16 && upper > 2 && lower > 2 && turns*3 >= n
	}
	return turns*4 >= n || n >= 16 && turns*6 >= n
}

// dotted reports whether a word is several pieces between dots of which one looks drawn at random, such as a token of the web.
func dotted(w string) bool {
	if strings.IndexByte(w, '.') < 8 {
		return false
	}
	for piece := range strings.SplitSeq(w, ".") {
		if len(piece) >= 12 && identifier(piece) {
			return true
		}
	}
	return false
}

// afterPrefix returns where the random part of an identifier such as req_8f14e45f or call-x7Kp2 begins; 0: there is none.
func afterPrefix(w string) int {
	i := strings.LastIndexAny(w, "_-:/")
	if i < 1 || i+6 > len(w) {
		return 0
	}
	tail := w[i+1:]
	n := 0
	for j := range len(tail) {
		c := tail[j]
		if c >= '0' && c <= '9' {
			n++
		} else if c|0x20 < 'a' || c|0x20 > 'z' {
			return 0
		}
	}
	if uuid(tail) || n > 0 && n < len(tail) && (identifier(tail) || len(tail) <= 8 && mixed(tail)) {
		return i + 1
	}
	return 0
}

// mixed reports whether letters and digits change more than once.
func mixed(w string) bool {
	turns := 0
	for i := 1; i < len(w); i++ {
		if (w[i] <= '9') != (w[i-1] <= '9') {
			turns++
		}
	}
	return turns >= 2
}
