package extract

import "regexp"

// Mark returns where the first thing stands that may begin a document, -1 if there is none. Where [Find] is not sure which the documents
// of a text are, all that follows may be one.
func Mark(text string) int {
	if mark := documentMark.FindStringIndex(text); mark != nil {
		return mark[0]
	}
	return -1
}

var documentMark = regexp.MustCompile(`(?i)<(doc|context|passage|reference|file|item|result)|\[[0-9]+\]|[{]\s*"`)
