package conversationtest

import (
	"regexp"
	"strings"
)

// note is one of the notes that stand for what is not sent.
type note struct {
	kind     noteKind
	names    string // a label, a call, or who said it
	first    string // the first words of what it stands for
	from, to int
}

type noteKind uint8

const (
	refersToBlock    noteKind = iota + 1 // names a label
	repeatsResult                        // names a call
	repeatsAll                           // stands for all documents, and names nothing
	repeatsRows                          // stands for lines
	repeatsDocuments                     // stands for documents, and names each by its first words
	statesRanking                        // stands for nothing
)

var wordings = []struct {
	kind noteKind
	form *regexp.Regexp
}{
	{refersToBlock, regexp.MustCompile(`Please refer to \[([^\]\n]+)\] in the previous conversation\.`)},
	{repeatsResult, regexp.MustCompile(`\[Duplicate content — identical to a previous tool result ` +
		`\(([^()\s]+)\)\. Refer to the earlier result above\.\]`)},
	{repeatsAll, regexp.MustCompile(`\[All (\d+) documents identical to a previous tool result ` +
		`\(\d+ chars\)\. Refer to the earlier result above\.\]`)},
	{repeatsRows, regexp.MustCompile(`\[\.\.\. "(?:[^\n]*\[\.\.\. ")?([^\n]*)" — identical to earlier ([^"\n]+) result, see above \.\.\.\]`)},
	{repeatsDocuments, regexp.MustCompile(`\[Documents "([^\n]*?)" — identical to earlier ([^"\n]+) result, see above\.\]`)},
	{statesRanking, regexp.MustCompile(`Relevance: ((?:\[[^\]\n]+\](?: > )?)+)\.`)},
	{statesRanking, regexp.MustCompile(`Please read the context in the following priority order: ` +
		`((?:\[[^\]\n]+\](?: > )?)+) and answer the question\.`)},
}

// notesIn finds what has the form of a note, by its letters as we write them.
func notesIn(text string) []note {
	var out []note
	for _, w := range wordings {
		for _, m := range w.form.FindAllStringSubmatchIndex(text, -1) {
			n := note{kind: w.kind, names: text[m[2]:m[3]], from: m[0], to: m[1]}
			if w.kind == repeatsRows || w.kind == repeatsDocuments {
				n.first, n.names = n.names, text[m[4]:m[5]]
			}
			out = append(out, n)
		}
	}
	return out
}

// stands reports whether the note may stand for lines: it says how the first one begins, and of several blocks how the last one does.
func (n note) stands(lines []string) bool {
	first, last := strings.TrimSpace(lines[0]), strings.TrimSpace(strings.Join(lines, "\n"))
	last = last[strings.LastIndexByte(last, '\n')+1:]
	if strings.HasPrefix(first, n.first) {
		return true
	}
	from, to, ok := strings.Cut(n.first, `" to "`)
	return ok && strings.HasPrefix(first, from) && strings.HasPrefix(strings.TrimSpace(last), to)
}

// begins reports whether the note may stand for lines of which this is the first.
func (n note) begins(line string) bool {
	from, _, _ := strings.Cut(n.first, `" to "`)
	return strings.HasPrefix(strings.TrimSpace(line), from)
}

var fenceWord = regexp.MustCompile(` \(quoted(?:-\d+)?\)`)

// unfenced takes the fence words out of a text that stood in it as sent, and says how many there were.
func unfenced(sent, arrived string) (string, int) {
	n := 0
	return fenceWord.ReplaceAllStringFunc(arrived, func(word string) string {
		if strings.Contains(sent, word) {
			return word
		}
		n++
		return ""
	}), n
}

var outsideID = regexp.MustCompile(`(EXTERNAL_UNTRUSTED_CONTENT) id=\\*"[0-9A-Fa-f]+\\*"`)

// compared returns a text as it is compared with another: without random IDs and the white space around it.
func compared(text string) string {
	return strings.TrimSpace(outsideID.ReplaceAllString(text, "$1"))
}
