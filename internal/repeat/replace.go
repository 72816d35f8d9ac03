package repeat

import (
	"crypto/sha256"
	"strings"
)

// Labels by which references name texts that no tool returned.
const (
	UserMessage      = "user message"
	AssistantMessage = "assistant message"
	SystemPrompt     = "system prompt"
)

const (
	minText      = 200 // characters: shorter texts are neither shortened nor referred to
	minBlock     = 40  // characters: the same for blocks
	maxFirstLine = 80  // characters of a block's first line that its reference shows
)

// Kind says how a text is treated.
type Kind int

// The kinds of texts.
const (
	Message    Kind = iota // words of a user or an assistant
	ToolResult             // may be JSON whose content, output, result, text or stdout holds the words
	System                 // only referred to, however short it is
)

// Text is one text of a request's body.
type Text struct {
	Text    string
	Label   string // names the text in references to it, such as the tool that returned it
	Message int    // number of the message that holds it: a repeat within one message stays; of no account for [System]
	Kind    Kind
	Fixed   bool // only referred to, such as what was already sent to an engine
}

// Counts say what was done to the texts of a body. The members are those of the recorded "dedup".
type Counts struct {
	BlocksDeduped       int `json:"blocks_deduped"`
	BlocksTotal         int `json:"blocks_total"`          // blocks of 40 or more characters that were looked at
	SystemBlocksMatched int `json:"system_blocks_matched"` // repeats of a system prompt, also those too short to replace
	CharsSaved          int `json:"chars_saved"`           // characters, not bytes
}

// Result is what became of the texts.
type Result struct {
	Counts
	Texts []string // as many as there were
	// CharsBefore and CharsAfter are the lengths in characters of the texts that changed.
	CharsBefore, CharsAfter int
}

// Replace writes the texts of one body, given in the order of the prompt, with a reference in place of each block
// that an earlier text of another message has, if that is shorter. A text that is one block is never shortened.
// modulus is that of [Blocks].
func Replace(texts []Text, modulus int) Result {
	r := Result{Texts: make([]string, len(texts))}
	var m Memory
	for i, t := range texts {
		r.Texts[i] = m.Shorten(t, modulus, &r)
	}
	return r
}

// Memory holds the first copy of each block of the texts so far. All of them stand in full in what was written. The
// zero Memory is empty. Not safe for concurrent use.
type Memory struct {
	seen  map[key]source
	fresh []Known
}

// Known is a block that a text was the first to have.
type Known struct {
	key    key
	source source
}

// key is what two blocks share if either can stand for the other.
type key [sha256.Size]byte

type source struct {
	label   string
	message int
	system  bool
}

// Know adds what [Memory.Fresh] returned for earlier texts.
func (m *Memory) Know(blocks []Known) {
	for _, b := range blocks {
		m.first(b.key, b.source)
	}
}

// Fresh returns the blocks that were seen first since the last call.
func (m *Memory) Fresh() []Known {
	out := m.fresh
	m.fresh = nil
	return out
}

func (m *Memory) first(k key, s source) {
	if m.seen == nil {
		m.seen = map[key]source{}
	}
	m.seen[k] = s
}

// Shorten writes the next text of a body, and adds to r's figures.
func (m *Memory) Shorten(t Text, modulus int, r *Result) string {
	if t.Kind != System && runes(t.Text) < minText {
		return t.Text
	}
	b := bodyOf(t)
	out, changed := m.shorten(t, b, cuts(b.lines, modulus), &r.Counts)
	if !changed {
		return t.Text
	}
	before, after := runes(t.Text), runes(out)
	r.CharsBefore += before
	r.CharsAfter += after
	r.CharsSaved += before - after
	return out
}

// shorten writes one text and adds its blocks to those seen.
func (m *Memory) shorten(t Text, b body, ends []int, c *Counts) (out string, changed bool) {
	var w strings.Builder
	at, written := 0, 0
	for _, end := range ends {
		start := at
		at = end
		block := trimmed(b.lines[start:end])
		if runes(block) < minBlock {
			continue
		}
		c.BlocksTotal++
		k := keyOf(block)
		src, known := m.seen[k]
		if !known {
			src = source{label: t.Label, message: t.Message, system: t.Kind == System}
			m.first(k, src)
			m.fresh = append(m.fresh, Known{k, src})
			continue
		}
		same := src.system == (t.Kind == System) && (src.system || src.message == t.Message)
		if same || t.Fixed || t.Kind == System || len(ends) < 2 {
			continue
		}
		if src.system {
			c.SystemBlocksMatched++
		}
		ref := reference(block, src.label)
		if runes(ref) >= runes(strings.Join(b.lines[start:end], "\n")) {
			continue
		}
		c.BlocksDeduped++
		w.WriteString(b.raw[written:b.ranges[start].start])
		w.WriteString(b.quote(ref))
		written = b.ranges[end-1].end
	}
	if written == 0 {
		return t.Text, false
	}
	w.WriteString(b.raw[written:])
	return w.String(), true
}

// keyOf returns the key of a block. Numbers count as text unless they are a listing's: a table of numbered rows that
// differs from another in its numbers is another table.
func keyOf(block string) key {
	if isListing(block) {
		block = unnumbered(block)
	}
	return sha256.Sum256([]byte(block))
}

// reference returns what stands for a block that the text called label has.
func reference(block, label string) string {
	first, _, _ := strings.Cut(block, "\n")
	if runes(first) > maxFirstLine {
		first = string([]rune(first)[:maxFirstLine])
	}
	return `[... "` + first + `" — identical to earlier ` + label + ` result, see above ...]`
}
