// Package chunk cuts a text into passages without losing or repeating any of it.
//
// A [Chunk] is a range of the source plus the headings that stand above it, so the passages of a file can be
// checked against the file byte by byte: what lies between two ranges is white space or a heading line that
// the next chunk carries in its Path. Cuts are made, in this order of preference, between sections,
// paragraphs, sentences, words, characters; a fenced code block is only cut if it is larger than the maximum.
package chunk

import (
	"bytes"
	"errors"
	"strings"
)

// MinTarget is the smallest [Limits.Target] that makes sense: below it every sentence would be cut.
const MinTarget = 64

// maxHeading is the longest title, in bytes, that is carried along as a heading. A longer "heading" is
// running text with a number sign in front, and would fill every passage of its section.
const maxHeading = 120

// separator stands between the headings of a path.
const separator = " > "

// Limits are the sizes of passages in bytes. Both must be set, Target at least [MinTarget], Max at least Target.
type Limits struct {
	// Target is the size up to which paragraphs are packed together, headings included.
	Target int
	// Max is the largest body: a sentence or code block between Target and Max is kept whole, a larger one is cut.
	Max int
}

// Chunk is one passage of a source text.
type Chunk struct {
	// Path holds the titles of the headings above the passage, outermost first. It is shared between the
	// chunks of a section and must not be changed.
	Path []string
	// Start and End are the range of the passage in the source. They are equal for a heading with nothing under it.
	Start, End int
}

// Text returns the passage as it is meant to be read: the path on the first line, then the body.
func (c Chunk) Text(src string) string {
	head, body := strings.Join(c.Path, separator), src[c.Start:c.End]
	switch {
	case head == "":
		return body
	case body == "":
		return head
	}
	return head + "\n" + body
}

// span is a piece of the source that packing keeps together.
type span struct {
	start, end int
	code       bool // a fenced block: cut only above Limits.Max, and then between lines
}

func (s span) size() int { return s.end - s.start }

// Plain cuts a text that has paragraphs but no markup. src must have been through [Normalize].
func Plain(src string, lim Limits) []Chunk {
	var b builder
	for ln := range lines(src) {
		if isBlank(src[ln.start:ln.end]) {
			b.flush()
		} else {
			b.extend(ln)
		}
	}
	b.flush()
	return pack(nil, src, section{atoms: b.atoms}, lim)
}

// builder collects the lines of a paragraph.
type builder struct {
	atoms []span
	para  span
	lines int // of the open paragraph; 0: none is open
}

func (b *builder) extend(ln span) {
	if b.lines == 0 {
		b.para = ln
	}
	b.para.end = ln.end
	b.lines++
}

func (b *builder) flush() {
	if b.lines > 0 {
		b.atoms = append(b.atoms, b.para)
		b.lines = 0
	}
}

// pack appends the section's chunks to out: neighbouring pieces share a chunk as long as they fit the target.
func pack(out []Chunk, src string, sec section, lim Limits) []Chunk {
	room := lim.Target
	if head := len(strings.Join(sec.path, separator)); head > 0 {
		room = max(lim.Target-head-1, lim.Target/2)
	}
	cur, open := span{}, false
	for _, atom := range sec.atoms {
		for _, piece := range pieces(src, atom, room, lim.Max) {
			if open && piece.end-cur.start <= room {
				cur.end = piece.end
				continue
			}
			if open {
				out = append(out, Chunk{Path: sec.path, Start: cur.start, End: cur.end})
			}
			cur, open = piece, true
		}
	}
	if open {
		out = append(out, Chunk{Path: sec.path, Start: cur.start, End: cur.end})
	}
	return out
}

// lines yields the range of every line of src, without its line feed.
func lines(src string) func(yield func(span) bool) {
	return func(yield func(span) bool) {
		for at := 0; at < len(src); {
			end, next := len(src), len(src)
			if i := strings.IndexByte(src[at:], '\n'); i >= 0 {
				end, next = at+i, at+i+1
			}
			if !yield(span{start: at, end: end}) {
				return
			}
			at = next
		}
	}
}

func isBlank(line string) bool { return strings.TrimSpace(line) == "" }

// ErrBinary says that a file is no text: it holds a NUL byte (UTF-16 files do, too).
var ErrBinary = errors.New("not a text file: it holds a NUL byte")

// Normalize turns the bytes of a file into the text that [Markdown] and [Plain] expect: valid UTF-8 with line
// feeds and no byte order mark. A run of invalid bytes becomes one U+FFFD. The only error is [ErrBinary].
func Normalize(raw []byte) (string, error) {
	if bytes.IndexByte(raw, 0) >= 0 {
		return "", ErrBinary
	}
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	if strings.IndexByte(text, '\r') >= 0 {
		text = strings.ReplaceAll(text, "\r\n", "\n")
		text = strings.ReplaceAll(text, "\r", "\n")
	}
	return text, nil
}
