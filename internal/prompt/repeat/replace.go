package repeat

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/internal/prompt/notes"
)

// Labels by which references name texts that no tool returned.
const (
	UserMessage      = "user message"
	AssistantMessage = "assistant message"
	SystemPrompt     = "system prompt"
)

const (
	minText   = 200 // characters: shorter texts are neither shortened nor referred to
	minBlock  = 40  // characters: the same for blocks
	maxWords  = 80  // characters of a line that a reference shows
	sureWords = 60  // characters by which a line is known: what is shown may begin with a number
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

// Result is what became of texts.
type Result struct {
	Counts
	// CharsBefore and CharsAfter are the lengths in characters of the texts that changed.
	CharsBefore, CharsAfter int
	// Cuts are the bytes of the last text that references stand for.
	Cuts [][2]int
}

// Memory holds, of each block of the texts so far, the first copy among those of the highest trust. All of them stand in
// full in what was written. The zero Memory is empty. Not safe for concurrent use.
type Memory struct {
	seen    map[key]source
	ended   map[uint64]int32 // where a line stands that may end a block, by its words: [several] for more than one
	lines   int              // that were looked at
	fresh   Known
	scratch []byte
}

// Known is what a Memory has learned from some texts. It is not changed any more, and may be shared.
type Known struct {
	blocks []known
	ends   []end
	lines  int
}

// known is a block that a text was the first of its trust to have.
type known struct {
	key    key
	source source
}

// Weight is about how many bytes k takes. Blocks of one text have one label.
func (k Known) Weight() int {
	n := 88*len(k.blocks) + 16*len(k.ends)
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
	// The numbers of the first lines of the text, of the block and behind it among all lines that were looked at.
	text, from, to int32
	exact          uint64 // of the block with the white space around it
}

// Know adds what [Memory.Fresh] returned for earlier texts, in whatever order it is called.
func (m *Memory) Know(k Known) {
	m.lines += k.lines
	for _, b := range k.blocks {
		if there, ok := m.seen[b.key]; !ok || b.source.kind.trust() >= there.kind.trust() {
			m.first(b.key, b.source)
		}
	}
	for _, e := range k.ends {
		m.stands(e)
	}
}

// And returns what k and later say together.
func (k Known) And(later Known) Known {
	later.lines += k.lines
	if len(k.blocks) > 0 {
		later.blocks = append(slices.Clip(k.blocks), later.blocks...)
	}
	if len(k.ends) > 0 {
		later.ends = append(slices.Clip(k.ends), later.ends...)
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

// Shorten writes the next text of a body, with a reference in place of each block that an earlier text of another message has, if that is
// shorter and the earlier text is trusted as much or more; it adds to r's figures. A text that is one block is never shortened. modulus
// is about how many lines a block has beyond the least number; 0 and less mean [DefaultModulus]. A text that would make the conversation
// longer than 1,048,576 lines stays as it is, and is not referred to. If ctx ends first, its error is returned, and the Memory is of no
// more use.
func (m *Memory) Shorten(ctx context.Context, t Text, modulus int, r *Result) (string, error) {
	r.Cuts = r.Cuts[:0]
	if t.Kind != System && runes(t.Text) < minText {
		m.Pass(t, modulus)
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
	s := shortening{t: t, b: b, modulus: modulus, start: m.lines - lines}
	n, from := 0, s.start
	for p := range b.pieces(modulus) {
		if n++; n%mostBlocks == 0 && ctx.Err() != nil {
			return "", false, ctx.Err()
		}
		m.block(&s, p, from, r)
		from += p.lines
	}
	if s.copied == 0 {
		return t.Text, false, nil
	}
	return string(append(s.out, b.raw[s.copied:]...)), true, nil
}

// shortening is a text of which the first blocks are written.
type shortening struct {
	t       Text
	b       body
	modulus int
	start   int    // the number of the text's first line
	out     []byte // the text up to copied, with references
	copied  int    // bytes of the text; 0: no reference was written yet
	row     *row   // what the last reference stands for, if it stood for the block in front; nil: for none
}

// block writes the next block, which begins with line from. What becomes of it, in this order:
//
//	it is short                                        it stays, and nothing refers to it
//	no earlier text, or only one trusted less, has it  it stays, and later texts may refer to it
//	it may not be replaced                             it stays
//	it goes on with the row of the block in front      the row's reference stands for it, too
//	a reference would be no shorter                    it stays
//	otherwise                                          a reference stands for it
//
// The ends of lines of all that stays are entered.
func (m *Memory) block(s *shortening, p piece, from int, r *Result) {
	t := &s.t
	before := s.row
	s.row = nil
	full := s.b.compared(p.from, p.to)
	block := trimmed(full)
	if runes(block) < minBlock {
		m.ends(*t, block, from, s.modulus)
		return
	}
	r.BlocksTotal++
	k := m.keyOf(block)
	here := source{
		label: t.Label, message: t.Message, kind: t.Kind, text: int32(s.start), from: int32(from), to: int32(from + p.lines),
	}
	if t.Merged {
		here.exact = m.exact(k, block, full)
	}
	src, seen := m.seen[k]
	if !seen || t.Kind.trust() > src.kind.trust() {
		// An attacker who controls the earlier text can say beside it that it does not hold: the later one stays, and
		// is what others refer to.
		m.ends(*t, block, from, s.modulus)
		m.first(k, here)
		m.fresh.blocks = append(m.fresh.blocks, known{k, here})
		return
	}
	same := src.kind != System && src.message == t.Message
	if same || t.Fixed || t.Kind == System || p.only {
		m.ends(*t, block, from, s.modulus)
		return
	}
	if src.kind == System {
		r.SystemBlocksMatched++
	}
	ref := reference(block, "", src.label)
	switch {
	case before != nil && m.endsOnly(src, block) && before.take(block, src, here, min(runes(ref), runes(full))):
		s.out = append(s.out[:before.at], s.b.quote(before.ref)...)
		r.Cuts[len(r.Cuts)-1][1] = p.to
		s.row = before
	case runes(ref) >= runes(full):
		m.ends(*t, block, from, s.modulus)
		return
	default:
		s.out = append(s.out, s.b.raw[s.copied:p.from]...)
		if t.Merged {
			s.row = newRow(block, ref, len(s.out), src, here)
		}
		s.out = append(s.out, s.b.quote(ref)...)
		r.Cuts = append(r.Cuts, [2]int{p.from, p.to})
	}
	r.BlocksDeduped++
	s.copied = p.to
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

// exact is what two blocks of one key share if the white space around them is the same, too.
func (m *Memory) exact(k key, block, full string) uint64 {
	if block != full {
		k = m.keyOf(full)
	}
	return binary.LittleEndian.Uint64(k[:])
}

// reference returns what stands for a block that the text called label has; of several blocks, last is the last one.
func reference(block, last, label string) string {
	first, _, _ := strings.Cut(block, "\n")
	last = trimmed(last[strings.LastIndexByte(last, '\n')+1:])
	return notes.Repeat(cut(first, maxWords), cut(last, maxWords), label)
}

// cut returns the first characters of a line.
func cut(line string, most int) string {
	if runes(line) > most {
		line = string([]rune(line)[:most])
	}
	return line
}
