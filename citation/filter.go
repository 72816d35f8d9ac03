package citation

import (
	"strings"
)

// MaxLength is the number of bytes from a citation's opening bracket to its closing one, at most.
const MaxLength = 512

// maxLabel is the length of the longest label in bytes.
const maxLabel = 64

// Citation is a label that an answer cites, and what it stands for.
type Citation struct {
	Source
	// Start and End are where the label stands in the answer as the model gave it, in bytes.
	Start, End int
}

// Options configures a [Filter]. The zero value passes the answer on unchanged.
type Options struct {
	// Found, if not nil, is called with each citation as soon as it is complete, in order, before Push returns the text.
	Found func(Citation)
	// Rewrite, if not nil, returns what is put in place of a bracket: text is the bracket as the model wrote it, and cited
	// are its citations, at least one. Text that may be the beginning of a bracket is then held back until that is known.
	Rewrite func(text string, cited []Citation) string
}

// Filter finds citations in one answer. What it finds and returns, all in all, does not depend on how the answer is cut into
// pieces. It is not safe for concurrent use: an answer comes one piece at a time.
type Filter struct {
	to      Resolver
	options Options
	at      int    // bytes of the answer so far
	open    []byte // since an opening bracket; empty: none is open
	cited   []Citation
}

// New returns a Filter for one answer. A label is resolved when its bracket is closed, so that the resolver may learn of
// the plan after New.
func New(to Resolver, options Options) *Filter {
	return &Filter{to: to, options: options}
}

// Find returns the citations of a whole answer, in order.
func Find(to Resolver, answer string) []Citation {
	f := New(to, Options{})
	f.Push(answer)
	f.End()
	return f.Citations()
}

// Citations returns those found so far, in order. The caller must not change them.
func (f *Filter) Citations() []Citation { return f.cited }

// Push takes the next piece of the answer and returns the text to be passed on: the piece, or with Options.Rewrite what
// is known not to be a bracket that is still open, with brackets before it rewritten.
func (f *Filter) Push(piece string) string {
	var out strings.Builder
	for i := range len(piece) {
		f.step(piece[i], &out)
	}
	if f.options.Rewrite == nil {
		return piece
	}
	return out.String()
}

// End ends the answer and returns what was held back.
func (f *Filter) End() string {
	var out strings.Builder
	f.giveUp(&out)
	return out.String()
}

// step takes one byte.
func (f *Filter) step(c byte, out *strings.Builder) {
	f.at++
	switch {
	case c == '[' || c == '<':
		f.giveUp(out)
		f.open = append(f.open, c)
		return
	case len(f.open) == 0:
		f.pass(out, c)
		return
	}
	f.open = append(f.open, c)
	switch {
	case c == closing(f.open[0]):
		f.closed(out)
	case c == '\n' || c == '\r' || len(f.open) >= MaxLength || !possible(f.open):
		f.giveUp(out)
	}
}

func closing(open byte) byte {
	if open == '<' {
		return '>'
	}
	return ']'
}

// possible reports whether a bracket may still become a citation. In answers "<" is mostly no bracket at all.
func possible(open []byte) bool {
	n := min(len(open), len(tag))
	return open[0] != '<' || string(open[:n]) == tag[:n]
}

// tag is how the markup opens a block.
const tag = "<doc "

// pass passes one byte on.
func (f *Filter) pass(out *strings.Builder, c byte) {
	if f.options.Rewrite != nil {
		out.WriteByte(c)
	}
}

// giveUp passes on what was held back.
func (f *Filter) giveUp(out *strings.Builder) {
	if f.options.Rewrite != nil {
		out.Write(f.open)
	}
	f.open = f.open[:0]
}

// closed reads a bracket that is complete.
func (f *Filter) closed(out *strings.Builder) {
	text := string(f.open)
	cited := f.read(text, f.at-len(text))
	if len(cited) == 0 {
		f.giveUp(out)
		return
	}
	f.cited = append(f.cited, cited...)
	if f.options.Found != nil {
		for _, c := range cited {
			f.options.Found(c)
		}
	}
	if f.options.Rewrite != nil {
		out.WriteString(f.options.Rewrite(text, cited))
	}
	f.open = f.open[:0]
}
