package notes

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zeebo/xxh3"
)

// Repeat stands for lines that an earlier text has. label names that text. last is the last line of several blocks; of one it is "".
func Repeat(first, last, label string) string {
	words := first
	if last != "" {
		words += `" to "` + last
	}
	return `[... "` + Fence(words) + `" — identical to earlier ` + label + ` result, see above ...]`
}

// Documents stands for documents that earlier texts have. Each is known by its first words, and label names the text.
func Documents(first []string, label string) string {
	return `[Documents "` + Fence(strings.Join(first, `", "`)) + `" — identical to earlier ` + label + ` result, see above.]`
}

// Duplicate stands for a tool result that equals that of an earlier call.
func Duplicate(call string) string {
	if !plain(call, "") {
		call = "~" + strconv.FormatUint(xxh3.HashString(call), 36)
	}
	return "[Duplicate content — identical to a previous tool result (" + call + "). Refer to the earlier result above.]"
}

// AllDocuments stands for documents of a tool result of so many characters, all of which were shown.
func AllDocuments(n, chars int) string {
	return fmt.Sprintf("[All %d documents identical to a previous tool result (%d chars). Refer to the earlier result above.]", n, chars)
}

// Tool returns the label for results of a tool: its name, or "tool" for a name that could be read as another part of a note or as
// one of the reserved labels of texts that are trusted more.
func Tool(name string, reserved ...string) string {
	if !plain(name, " ") {
		return "tool"
	}
	for _, r := range reserved {
		if lettersOf(name) == lettersOf(r) {
			return "tool"
		}
	}
	return name
}

// plain reports whether a name can stand in a note without ending a part of it.
func plain(name, also string) bool {
	if name == "" || !utf8.ValidString(name) {
		return false
	}
	for _, r := range name {
		if strings.ContainsRune("()[]{}\"'`<>\\", r) || !strings.ContainsRune(also, r) && unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return false
		}
	}
	s := lettersOf(name)
	return !strings.Contains(s, "identical") && !strings.Contains(s, "seeabove")
}

// lettersOf returns the letters of a name in lower case.
func lettersOf(name string) string {
	return strings.Map(func(r rune) rune {
		if isLetter(r) {
			return unicode.ToLower(narrow(r))
		}
		return -1
	}, name)
}
