package repeat

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// DefaultModulus makes blocks of about 15 lines: one line in so many may end a block.
	DefaultModulus = 13

	minLines = 3  // of a block, and of what is cut at all
	maxLines = 40 // of a block, not counting a short rest that joins it
)

// Block is a row of whole lines of a text.
type Block struct {
	Lines int    // at least 1: an empty text is one empty line
	Hash  string // 20 hexadecimal digits; equal for blocks that differ in line numbers and outer white space only
}

// Blocks cuts a text into blocks; together they are all of its lines, in order. modulus is about how many lines a
// block has beyond the least number; 0 and less mean [DefaultModulus].
func Blocks(text string, modulus int) []Block {
	lines := strings.Split(text, "\n")
	ends := cuts(lines, modulus)
	blocks := make([]Block, len(ends))
	at := 0
	for i, end := range ends {
		sum := sha256.Sum256([]byte(unnumbered(trimmed(lines[at:end]))))
		blocks[i] = Block{Lines: end - at, Hash: hex.EncodeToString(sum[:10])}
		at = end
	}
	return blocks
}

// cuts returns the index behind the last line of each block.
func cuts(lines []string, modulus int) []int {
	if modulus <= 0 {
		modulus = DefaultModulus
	}
	if len(lines) <= minLines {
		return []int{len(lines)}
	}
	var ends []int
	at := 0
	for i, line := range lines {
		n := i + 1 - at
		if n < minLines {
			continue
		}
		if n < maxLines {
			sum := md5.Sum([]byte(strings.TrimFunc(line[numberEnd(line):], isSpace)))
			if uint64(binary.LittleEndian.Uint32(sum[:]))%uint64(modulus) != 0 {
				continue
			}
		}
		at = i + 1
		ends = append(ends, at)
	}
	switch rest := len(lines) - at; {
	case rest == 0:
	case rest < minLines && len(ends) > 0:
		ends[len(ends)-1] = len(lines)
	default:
		ends = append(ends, len(lines))
	}
	return ends
}

// trimmed returns the lines as one text without white space around it.
func trimmed(lines []string) string {
	return strings.TrimFunc(strings.Join(lines, "\n"), isSpace)
}

// numberEnd returns where a line number such as "  12|" ends, or 0 if the line has none.
func numberEnd(line string) int {
	rest := strings.TrimLeftFunc(line, isSpace)
	after := strings.TrimLeftFunc(rest, unicode.IsDigit)
	if len(after) == len(rest) || !strings.HasPrefix(after, "|") {
		return 0
	}
	return len(line) - len(after) + 1
}

// unnumbered returns a text without its line numbers.
func unnumbered(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = line[numberEnd(line):]
	}
	return strings.Join(lines, "\n")
}

// isListing reports whether every line has a number and each number is one more than the one before. Only then can
// the numbers be told from the first one; others are data.
func isListing(text string) bool {
	first, i := 0, 0
	for line := range strings.Lines(text) {
		end := numberEnd(line)
		if end == 0 {
			return false
		}
		n, err := strconv.Atoi(strings.TrimFunc(line[:end-1], isSpace))
		if err != nil || i > 0 && n != first+i {
			return false
		}
		if i == 0 {
			first = n
		}
		i++
	}
	return i > 0
}

// isSpace agrees with Python's str.isspace, which counts four separators that Unicode does not.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// runes counts characters as the recorded lengths do.
func runes(s string) int { return utf8.RuneCountInString(s) }
