package demo

import (
	"fmt"
	"strings"
)

// example is one request in detail: the prompts of both sides as stacks of their parts.
type example struct {
	Heading, Caption string
	Height           int
	Stacks           []stack
}

// stack is one prompt, from its beginning (on top) to its end.
type stack struct {
	Side    string // "without" or "with"
	X       int
	Summary string
	Cells   []cell
	Text    string // this turn's message
}

// cell is one part of a prompt. Split is the height of what was reused, from the top.
type cell struct {
	X, Y, H, W, Split int
	TextX, RightX     int
	TextY             int
	Class             string
	Label, Tokens     string
	Reused            string // "reused", "computed", "partly reused"; "" if unknown
}

const (
	stackWidth = 440
	stackGap   = 24
	stackTop   = 30
	cellGap    = 3
)

// examples picks the request that gained most by order and the one that gained most by references.
func (r *Result) examples() []example {
	order, refs := -1, -1
	gain := func(i int) int { return r.Without[i].Computed() - r.With[i].Computed() }
	for i := range r.Questions {
		switch {
		case !r.With[i].CachedKnown:
		case len(r.With[i].Refs) == 0 && r.With[i].Reordered && gain(i) > 0 && (order < 0 || gain(i) > gain(order)):
			order = i
		}
		if n := len(r.With[i].Refs); n > 0 && (refs < 0 || gain(i) > gain(refs)) {
			refs = i
		}
	}
	var out []example
	if order >= 0 {
		out = append(out, r.example(order, "One prompt before and after: order",
			"The same blocks, those that the cache holds first; the retriever's ranking stands behind them."))
	}
	if refs >= 0 {
		out = append(out, r.example(refs, "One prompt before and after: references",
			"Blocks that stand in the conversation already are named, not sent again; the history is shorter for the same reason."))
	}
	return out
}

func (r *Result) example(i int, heading, caption string) example {
	q := r.Questions[i]
	e := example{Heading: heading, Caption: fmt.Sprintf("%s, turn %d: “%s” %s", q.User, q.Turn.Turn, printable(q.Question, ""), caption)}
	for n, side := range []struct {
		name string
		sent Sent
	}{{"without", r.Without[i]}, {"with", r.With[i]}} {
		s, height := r.stack(side.name, side.sent, n*(stackWidth+stackGap))
		e.Stacks = append(e.Stacks, s)
		e.Height = max(e.Height, height)
	}
	return e
}

func (r *Result) stack(side string, sent Sent, x int) (s stack, height int) {
	s = stack{Side: side, X: x, Text: printable(sent.Text, "\n\t"), Summary: fmt.Sprintf("%s: %s prompt tokens", side, thousands(sent.Prompt))}
	if sent.CachedKnown {
		s.Summary += fmt.Sprintf(", %s computed", thousands(sent.Computed()))
	}
	sum := 0
	for _, p := range sent.Parts {
		sum += p.Tokens
	}
	// The engine may count more than the parts have (chat template) or otherwise (another tokenizer).
	scale := float64(sent.Cached) / float64(max(1, sent.Prompt)) * float64(sum)
	y, begin := stackTop, 0
	for _, p := range sent.Parts {
		c := cell{X: x, Y: y, W: stackWidth, H: cellHeight(p), TextX: x + 10, RightX: x + stackWidth - 10, Tokens: thousands(p.Tokens)}
		c.TextY = c.Y + c.H/2 + 4
		c.Class, c.Label = string(p.Kind), string(p.Kind)
		if p.Block != "" {
			c.Label = r.code[p.Block] + " " + shorten(r.titleOf(p.Block), 54)
		}
		if p.Kind == RefPart {
			c.Label = "see " + c.Label
		}
		c.Class = strings.ReplaceAll(c.Class, " ", "-")
		if sent.CachedKnown {
			share := min(max((scale-float64(begin))/float64(max(1, p.Tokens)), 0), 1)
			c.Split = int(share * float64(c.H))
			switch share {
			case 0:
				c.Reused = "computed"
			case 1:
				c.Reused = "reused"
			default:
				c.Reused = "partly reused"
			}
		}
		s.Cells = append(s.Cells, c)
		y += c.H + cellGap
		begin += p.Tokens
	}
	return s, y + 4
}

// cellHeight grows with the length, but the history must not dwarf the blocks.
func cellHeight(p Part) int { return min(18+p.Tokens/10, 64) }

// titleOf names a block for people: its ID and the last of its headings.
func (r *Result) titleOf(id string) string {
	for _, b := range r.Blocks {
		if b.ID == id {
			return printable(b.ID+" · "+b.Title[strings.LastIndex(b.Title, "> ")+1:], "")
		}
	}
	return printable(id, "")
}

func shorten(s string, limit int) string {
	runes := []rune(s)
	if len(runes) <= limit {
		return s
	}
	return string(runes[:limit-1]) + "…"
}
