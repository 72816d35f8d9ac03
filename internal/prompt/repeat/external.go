package repeat

import (
	"regexp"
	"strings"
)

// external are the marks by which some clients set off what is from outside. Their IDs are random, so that what they set off
// cannot hold the closing one: they stay in the text, and only comparisons leave them out.
var external = regexp.MustCompile(`((?:<|\\+u003[cC]){3}(?:END_)?EXTERNAL_UNTRUSTED_CONTENT) id=\\*"[0-9A-Fa-f]+\\*"((?:>|\\+u003[eE]){3})`)

func hasExternal(text string) bool { return strings.Contains(text, "EXTERNAL_UNTRUSTED_CONTENT id=") }

// WithoutIDs returns a text as it is compared with others: without the random IDs of marks of external content.
func WithoutIDs(text string) string {
	if !hasExternal(text) {
		return text
	}
	return external.ReplaceAllString(text, "$1$2")
}
