package framework

import (
	"strings"
	"unicode"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// span is the part of a text in which a plan's blocks stand, with what its author put between and around them.
type span struct {
	before, after string
	blocks        string   // from the first to the last, as they stand there
	gaps          []string // between the blocks; nil: they do not stand there as they are rendered
	whole         []string // by the blocks' indices: as they stand there; nil: as they are rendered
	hint          hintPlace
	oldHint       string
	echo          string // the plan's, without a line feed; it stands on the line behind the blocks and is part of the span
}

// hintPlace says where the plan's order hint stands.
type hintPlace uint8

const (
	hintNone   hintPlace = iota // nowhere
	hintBehind                  // on the line behind the blocks; part of the span
	hintApart                   // elsewhere: a program of its own mind has put it there
)

// newSpan takes a text apart. text[start:end] runs from the first to the last block.
func newSpan(text string, plan *contextpilot.Plan, start, end int) span {
	s := span{before: text[:start], blocks: text[start:end], after: text[end:], oldHint: plan.Hint, echo: echoOf(plan)}
	if s.echo != "" {
		s.after = strings.TrimPrefix(s.after, "\n"+s.echo)
	}
	if s.oldHint != "" {
		rest, behind := strings.CutPrefix(s.after, "\n"+s.oldHint)
		switch {
		case behind:
			s.hint, s.after = hintBehind, rest
		case strings.Contains(s.before, s.oldHint) || strings.Contains(s.after, s.oldHint):
			s.hint = hintApart
		}
	}
	gaps := make([]string, 0, len(plan.Items))
	rest := s.blocks
	for i := range plan.Items {
		gap, behind, ok := strings.Cut(rest, rendered(plan, i))
		if !ok || i == 0 && gap != "" {
			return s
		}
		if !between(s.before, gap) {
			return s
		}
		if i > 0 {
			gaps = append(gaps, gap)
		}
		rest = behind
	}
	s.gaps = gaps
	return s
}

// echoOf returns the plan's echo as it stands in a text, without a line feed.
func echoOf(plan *contextpilot.Plan) string { return strings.TrimSuffix(plan.RenderEcho(), "\n") }

// between reports whether a gap may stand between any two blocks: it has no words, or those that stand in front of the first block, too,
// but for numbers. Others are captions of a block, or the author's own.
func between(before, gap string) bool {
	if !strings.ContainsFunc(gap, unicode.IsLetter) {
		return true
	}
	bare := func(text string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsDigit(r) || unicode.IsSpace(r) {
				return -1
			}
			return r
		}, text)
	}
	return strings.HasSuffix(bare(before), bare(gap))
}

// known reports whether the span can be rewritten.
func (s *span) known() bool { return s.gaps != nil }

// hinted returns the text as it is, with the plan's echo behind the blocks, and its hint if it stands nowhere.
func (s *span) hinted(noHint bool) string {
	text := s.before + s.blocks
	if s.echo != "" {
		text += "\n" + s.echo
	}
	if s.oldHint != "" && (s.hint == hintBehind || s.hint == hintNone && !noHint) {
		text += "\n" + s.oldHint
	}
	return text + s.after
}

// says returns the echo and the hint that the text of hinted has, each with a line feed.
func (s *span) says(noHint bool) (text string) {
	if s.echo != "" {
		text = s.echo + "\n"
	}
	if s.oldHint != "" && (s.hint != hintNone || !noHint) {
		text += s.oldHint + "\n"
	}
	return text
}

// rewrite returns the text with another plan of the same blocks, or of some of them, in the span. Blocks sent in full
// stand between the gaps that stood between the old ones, from the first on; references follow on lines of their own.
func (s *span) rewrite(plan *contextpilot.Plan, noHint bool) string {
	var b strings.Builder
	line := func(text string) {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(text)
	}
	for i, it := range plan.Items {
		text := rendered(plan, i)
		if it.Ref == nil && s.whole != nil {
			text = s.whole[it.Index]
		}
		switch {
		case it.Ref != nil && text != "": // "" if the pilot is configured not to note locations
			line(text)
		case it.Ref == nil:
			if i > 0 {
				b.WriteString(s.gap(i - 1))
			}
			b.WriteString(text)
		}
	}
	if echo := echoOf(plan); echo != "" {
		line(echo)
	}
	before, after, hint := s.before, s.after, plan.Hint
	switch {
	case s.hint == hintApart:
		before = strings.ReplaceAll(before, s.oldHint, hint)
		after = strings.ReplaceAll(after, s.oldHint, hint)
	case hint != "" && (s.hint == hintBehind || !noHint):
		line(hint)
	}
	return before + b.String() + after
}

// gap returns what stands between blocks i and i+1. After a fault a plan sends what it would have left out, so that
// there may be more blocks than stood in the text.
func (s *span) gap(i int) string {
	if i < len(s.gaps) {
		return s.gaps[i]
	}
	return "\n\n"
}
