package repeat

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/internal/notes"
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

// maxConversation bounds the lines of a conversation that are looked at. A line is a token at least, and no model reads as
// many; clients may send thirty times that in one body.
const maxConversation = 1 << 20

// mostBlocks is how many blocks are looked at until the context is asked again.
const mostBlocks = 256

// Kind says how a text is treated.
type Kind int

// The kinds of texts.
const (
	Message    Kind = iota // words of a user
	ToolResult             // may be JSON whose content, output, result, text or stdout holds the words
	System                 // only referred to, however short it is
	Assistant              // words of an assistant
)

// trust orders the kinds by how far a model may follow them: system, user, assistant, tool.
func (k Kind) trust() int {
	switch k {
	case System:
		return 3
	case Message:
		return 2
	case Assistant:
		return 1
	}
	return 0
}

// Text is one text of a request's body.
type Text struct {
	Text    string
	Label   string // names the text in references to it, such as the tool that returned it
	Message int    // number of the message that holds it: a repeat within one message stays; of no account for [System]
	Kind    Kind
	Fixed   bool // only referred to, such as what was already sent to an engine
	JSON    bool // what is JSON stays JSON: its own lines are only referred to
	Merged  bool // one reference stands for all blocks in a row that an earlier text has in a row
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
	// Cuts are the bytes of the last text that references stand for.
	Cuts [][2]int
}

// Replace writes the texts of one body, given in the order of the prompt, with a reference in place of each block
// that an earlier text of another message has, if that is shorter and the earlier text is trusted as much or more. A
// text that is one block is never shortened.
// modulus is that of [Blocks].
func Replace(texts []Text, modulus int) Result {
	r := Result{Texts: make([]string, len(texts))}
	var m Memory
	for i, t := range texts {
		r.Texts[i], _ = m.Shorten(context.Background(), t, modulus, &r) // the only error is the context's
	}
	return r
}

// Memory holds, of each block of the texts so far, the first copy among those of the highest trust. All of them stand in
// full in what was written. The zero Memory is empty. Not safe for concurrent use.
type Memory struct {
	seen    map[key]source
	lines   int // that were looked at
	fresh   Known
	scratch []byte
}

// Known is what a Memory has learned from some texts. It is not changed any more, and may be shared.
type Known struct {
	blocks []known
	lines  int
}

// known is a block that a text was the first of its trust to have.
type known struct {
	key    key
	source source
}

// Weight is about how many bytes k takes. Blocks of one text have one label.
func (k Known) Weight() int {
	n := 80 * len(k.blocks)
	for i, b := range k.blocks {
		if i == 0 || b.source.label != k.blocks[i-1].source.label {
			n += len(b.source.label)
		}
	}
	return n
}

// key is what two blocks share if either can stand for the other.
type key [sha256.Size]byte

type source struct {
	label   string
	message int
	kind    Kind
	// The numbers of the first lines of the text and of the block among all lines that were looked at, and how many the block has.
	text, from, lines int32
}

// goesOn reports whether a block stands behind s in the same text.
func (s source) goesOn(next source) bool {
	return s.lines > 0 && next.text == s.text && next.from == s.from+s.lines
}

// Know adds what [Memory.Fresh] returned for earlier texts, in whatever order it is called.
func (m *Memory) Know(k Known) {
	m.lines += k.lines
	for _, b := range k.blocks {
		if there, ok := m.seen[b.key]; !ok || b.source.kind.trust() >= there.kind.trust() {
			m.first(b.key, b.source)
		}
	}
}

// And returns what k and later say together.
func (k Known) And(later Known) Known {
	later.lines += k.lines
	if len(k.blocks) > 0 {
		later.blocks = append(slices.Clip(k.blocks), later.blocks...)
	}
	return later
}

// Fresh returns what was learned since the last call.
func (m *Memory) Fresh() Known {
	out := m.fresh
	m.fresh = Known{}
	return out
}

func (m *Memory) first(k key, s source) {
	if m.seen == nil {
		m.seen = map[key]source{}
	}
	m.seen[k] = s
}

// Shorten writes the next text of a body, and adds to r's figures. A text that would make the conversation longer than
// 1,048,576 lines stays as it is, and is not referred to. If ctx ends first, its error is returned, and the Memory is of
// no more use.
func (m *Memory) Shorten(ctx context.Context, t Text, modulus int, r *Result) (string, error) {
	r.Cuts = r.Cuts[:0]
	if t.Kind != System && runes(t.Text) < minText {
		return t.Text, nil
	}
	b := bodyOf(t)
	t.Fixed = t.Fixed || t.JSON && !b.quoted && isJSON(t.Text)
	lines := b.count(maxConversation - m.lines)
	if m.lines+lines > maxConversation {
		return t.Text, nil
	}
	m.lines += lines
	m.fresh.lines += lines
	out, changed, err := m.shorten(ctx, t, b, lines, modulus, r)
	if err != nil || !changed {
		return t.Text, err
	}
	before, after := runes(t.Text), runes(out)
	r.CharsBefore += before
	r.CharsAfter += after
	r.CharsSaved += before - after
	return out, nil
}

// isJSON reports whether a text is an object or a list.
func isJSON(text string) bool {
	body := strings.TrimFunc(text, isSpace)
	return body != "" && (body[0] == '{' || body[0] == '[') && json.Valid([]byte(body))
}

// shorten writes one text and adds its blocks to those seen.
func (m *Memory) shorten(ctx context.Context, t Text, b body, lines, modulus int, r *Result) (out string, changed bool, err error) {
	var w strings.Builder
	written, n, c := 0, 0, &r.Counts
	start := m.lines - lines
	from, before := start, replaced{}
	for p := range b.pieces(modulus) {
		if n++; n%mostBlocks == 0 && ctx.Err() != nil {
			return "", false, ctx.Err()
		}
		here, last := from, before
		from += p.lines
		before = replaced{}
		full := b.compared(p.from, p.to)
		block := trimmed(full)
		if runes(block) < minBlock {
			continue
		}
		c.BlocksTotal++
		k := m.keyOf(block)
		src, seen := m.seen[k]
		if !seen || t.Kind.trust() > src.kind.trust() {
			// An attacker who controls the earlier text can say beside it that it does not hold: the later one stays, and
			// is what others refer to.
			src = source{label: t.Label, message: t.Message, kind: t.Kind, text: int32(start), from: int32(here), lines: int32(p.lines)}
			m.first(k, src)
			m.fresh.blocks = append(m.fresh.blocks, known{k, src})
			continue
		}
		same := src.kind != System && src.message == t.Message
		if same || t.Fixed || t.Kind == System || p.only {
			continue
		}
		if src.kind == System {
			c.SystemBlocksMatched++
		}
		now := replaced{source: src, lines: p.lines}
		now.first, now.last, now.listing = numbersOf(block)
		if t.Merged && last.goesOn(now) {
			c.BlocksDeduped++
			written = p.to
			r.Cuts[len(r.Cuts)-1][1] = p.to
			before = now
			continue
		}
		ref := reference(block, src.label)
		if runes(ref) >= runes(full) {
			continue
		}
		c.BlocksDeduped++
		w.WriteString(b.raw[written:p.from])
		w.WriteString(b.quote(ref))
		written = p.to
		r.Cuts = append(r.Cuts, [2]int{p.from, p.to})
		before = now
	}
	if written == 0 {
		return t.Text, false, nil
	}
	w.WriteString(b.raw[written:])
	return w.String(), true, nil
}

// replaced is the last block that a reference stands for.
type replaced struct {
	source      source
	lines       int
	first, last int // numbers of its lines, if it is a listing
	listing     bool
}

// goesOn reports whether the reference may stand for the next block, too: the source has it behind this one, and the numbers of a
// listing count on.
func (r replaced) goesOn(next replaced) bool {
	return r.source.goesOn(next.source) && int(r.source.lines) == r.lines && r.listing == next.listing && (!r.listing || next.first == r.last+1)
}

// keyOf returns the key of a block. Numbers count as text unless they are a listing's: a table of numbered rows that
// differs from another in its numbers is another table.
func (m *Memory) keyOf(block string) key {
	if isListing(block) {
		block = unnumbered(block)
	}
	m.scratch = append(m.scratch[:0], block...)
	return sha256.Sum256(m.scratch)
}

// reference returns what stands for a block that the text called label has.
func reference(block, label string) string {
	first, _, _ := strings.Cut(block, "\n")
	if runes(first) > maxFirstLine {
		first = string([]rune(first)[:maxFirstLine])
	}
	return notes.Repeat(first, label)
}
