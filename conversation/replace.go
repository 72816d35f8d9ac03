package conversation

import (
	"strings"
	"unicode/utf8"
	"unique"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/internal/extract"
	"github.com/ragpilot/ragpilot/internal/notes"
	"github.com/ragpilot/ragpilot/internal/orders"
	"github.com/ragpilot/ragpilot/internal/repeat"
)

// find returns the documents of a text. JSON is not laid out anew unless the client has asked for the form.
func (x *request) find(text string) (extract.Found, bool) {
	form := x.c.Look.Form
	found, ok := extract.Find(text, form)
	if found.Mode == extract.JSONResults && form.Mode != extract.JSONResults {
		found = found.AsWritten()
	}
	return found, ok
}

// contentOf returns the content of a text or a document, without the random IDs that some clients put into it.
func contentOf(text string) content { return xxh3.HashString128(repeat.WithoutIDs(text)) }

// tool plans a result: the first of several documents is ordered, in later ones those that were shown are left out,
// and a single document that was shown becomes a reference.
func (x *request) tool(next *link, s *seen, message int, tx *Text, place orders.Key) string {
	found, ok := x.find(tx.Value)
	if !ok || len(found.Docs) < 2 || len(found.Docs) > maxDocuments {
		return x.single(next, s, message, tx)
	}
	x.turn.Found += len(found.Docs)
	defer func() {
		for _, d := range found.Docs {
			c := contentOf(d.Text)
			s.shown[c] = true
			next.shown = append(next.shown, c)
		}
	}()
	if s.multi {
		return x.leaveOut(next, s, message, found, tx.Value)
	}
	s.multi = true
	if x.c.Place == nil {
		return tx.Value
	}
	keys := make([]Sum, len(found.Docs))
	for i, d := range found.Docs {
		keys[i] = contentOf(d.Key)
	}
	order := x.ordered(place, len(keys), func() []int { return x.c.Place(x.ctx, keys) })
	return notes.Fence(x.reorder(found, order, found.Plain(), Change{Message: message, Role: Tool}, tx.Value))
}

// leaveOut drops the documents that stand further up already.
func (x *request) leaveOut(next *link, s *seen, message int, found extract.Found, as string) string {
	var keep []int
	drop := map[int]bool{}
	for i, d := range found.Docs {
		if drop[i] = s.shown[contentOf(d.Text)]; !drop[i] {
			keep = append(keep, i)
		}
	}
	c := Change{Kind: LeftOut, Message: message, Role: Tool, Documents: len(found.Docs), Gone: len(found.Docs) - len(keep)}
	if c.Gone == 0 {
		return as
	}
	defer func() { x.turn.Changes = append(x.turn.Changes, c) }()
	if len(keep) > 0 {
		if found.Plain() {
			return notes.Fence(found.Rebuild(keep))
		}
		return notes.Fence(found.Without(drop))
	}
	if rest := found.Without(drop); notes.Fence(rest) != rest {
		return notes.Fence(rest) // what stood around the documents would make a note beside ours
	}
	c.Kind = Collapsed
	chars := utf8.RuneCountInString(as)
	note := notes.AllDocuments(c.Gone, chars)
	next.lines.Before += chars
	next.lines.After += utf8.RuneCountInString(note)
	return found.Collapse(note)
}

// shortText is the number of characters below which a repeated result is not worth a reference.
const shortText = 100

// single replaces a result that equals an earlier one of another call.
func (x *request) single(next *link, s *seen, message int, tx *Text) string {
	if utf8.RuneCountInString(tx.Value) < shortText || tx.Call == "" {
		return tx.Value
	}
	c := contentOf(tx.Value)
	first, ok := s.calls[c]
	if !ok {
		call := strings.Clone(tx.Call)
		s.calls[c] = call
		next.single = append(next.single, single{content: c, call: call})
		return tx.Value
	}
	if first == tx.Call {
		return tx.Value
	}
	x.turn.Changes = append(x.turn.Changes, Change{Kind: Referred, Message: message, Role: Tool, Documents: 1, Gone: 1})
	return notes.Duplicate(first)
}

// rows replaces blocks of lines that stand further up.
func (x *request) rows(at *link, s *seen, message int, tx *Text, value string) string {
	if !tx.Rows {
		return value
	}
	next := repeat.Text{Text: value, Message: message}
	switch tx.Role {
	case System:
		next.Kind, next.Label = repeat.System, repeat.SystemPrompt
	case Tool:
		next.Kind, next.Label = repeat.ToolResult, unique.Make(notes.Tool(tx.Tool, repeat.SystemPrompt, repeat.UserMessage, repeat.AssistantMessage)).Value()
	case User:
		next.Label = repeat.UserMessage
	case Assistant:
		next.Kind, next.Label = repeat.Assistant, repeat.AssistantMessage
	default:
		return value
	}
	var r repeat.Result
	out, err := s.rows.Shorten(x.ctx, next, x.e.opt.Modulus, &r)
	if err != nil {
		return value // the caller asks the context, too
	}
	at.lines.add(Lines{
		Replaced: r.BlocksDeduped, Total: r.BlocksTotal, System: r.SystemBlocksMatched, Saved: r.CharsSaved,
		Before: r.CharsBefore, After: r.CharsAfter,
	})
	return out
}
