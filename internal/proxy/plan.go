package proxy

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/extract"
	"github.com/ragpilot/ragpilot/internal/notes"
	"github.com/ragpilot/ragpilot/internal/orders"
	"github.com/ragpilot/ragpilot/internal/repeat"
)

// talk is what the items of a conversation so far have shown.
type talk struct {
	multi bool // some tool result held several documents
	shown map[content]bool
	calls map[content]string // tool results of one document: the call that gave it
	tools map[string]string  // tools' names by the calls' IDs
	lines repeat.Memory      // blocks of lines
	front bool               // nothing but system items so far
}

// plan orders and replaces the documents of a body, as decided before where the same items were sent before. An error is
// the context's: the client has gone, and nothing more is planned or remembered for it.
func (x *exchange) plan(b *body, c conversation) ([]edit, error) {
	last, known := c.memo.longest(c.chains, c.by)
	t := recall(last)
	x.result.Messages = len(b.items)
	if len(b.items) > 0 && b.items[0].message < 0 {
		x.result.Messages--
	}
	next := new(turn)
	var it item // one for all: there may be many, and most say little
	for i := known; i < len(b.items); i++ {
		texts := it.texts[:0]
		it = b.item(i)
		it.texts = texts
		it.load(x.dialect, t.tools)
		next.chain, next.before, next.items, next.calls = c.chains[i], last, i+1, it.calls
		if err := x.item(next, t, b, &it); err != nil {
			return nil, err
		}
		t.front = t.front && it.role == system
		next.front, next.multi, next.lines = t.front, t.multi, next.lines.And(t.lines.Fresh())
		if i+1 < len(b.items) && next.plain() {
			continue // the next one takes over its numbers of lines
		}
		last = c.memo.add(next, c.by)
		next = new(turn)
	}
	c.memo.sent(last, c.by, x.asCame)
	var edits []edit
	for ; last != nil; last = last.before {
		i := last.items - 1
		edits = moved(edits, last.edits, b.items[i].from)
		x.cut.add(last.cut)
		if last.scope != nil {
			x.scope = last.scope // in the end that of the first documents
		}
		if i >= known {
			x.replaced += last.cut.blocks.Deduped
			continue
		}
		for _, l := range last.leads {
			x.again(l, b.items[i].from)
		}
	}
	x.result.count(x.cut)
	x.changed = len(edits) > 0
	return edits, nil
}

// recall collects what the turns up to t have shown.
func recall(t *turn) *talk {
	out := &talk{shown: map[content]bool{}, calls: map[content]string{}, tools: map[string]string{}, front: t == nil || t.front}
	for ; t != nil; t = t.before {
		out.multi = out.multi || t.multi
		for _, c := range t.shown {
			out.shown[c] = true
		}
		for _, c := range t.calls {
			out.tools[c.id] = c.tool
		}
		out.lines.Know(t.lines)
		for _, s := range t.single {
			out.calls[s.content] = s.toolID // the earliest stays, as we walk backwards
		}
	}
	return out
}

// item plans the texts of one item. An error is the context's.
func (x *exchange) item(next *turn, t *talk, b *body, it *item) error {
	next.edits = fenceOthers(next.edits, it, x.dialect)
	came := make([]string, len(it.texts))
	for i := range it.texts {
		came[i] = it.texts[i].value
	}
	x.fence(it)
	for i := range it.texts {
		if err := x.r.Context().Err(); err != nil {
			return err
		}
		tx := &it.texts[i]
		out := tx.value
		place := placeOf(next.chain, i)
		switch {
		case tx.role == system && t.front && x.control.system:
			out = x.system(next, b, it, tx, place)
		case tx.role == tool && x.control.tools && x.dialect != responses:
			out = x.tool(next, t, it, tx, place)
		}
		if out = x.lines(next, t, it, tx, out); out != came[i] {
			next.edits = append(next.edits, edit{from: tx.from, to: tx.to, with: quote(out)})
		}
	}
	return x.r.Context().Err()
}

// placeOf names one text of an item.
func placeOf(c chain, text int) orders.Key {
	var k orders.Key
	binary.LittleEndian.PutUint64(k[:8], c.Lo+uint64(text))
	binary.LittleEndian.PutUint64(k[8:], c.Hi)
	return k
}

// maxDocuments bounds the documents of a text that are looked at one by one: ordering takes time by their square.
const maxDocuments = 4096

// find returns the documents of a text. JSON is not laid out anew unless the client has asked for the mode.
func (x *exchange) find(text string) (extract.Found, bool) {
	found, ok := extract.Find(text, x.control.extract)
	if found.Mode == extract.JSONResults && x.control.extract.Mode != extract.JSONResults {
		found = found.AsWritten()
	}
	return found, ok
}

// contentOf returns the content of a text or a document, without the random IDs that some clients put into it.
func contentOf(text string) content { return xxh3.HashString128(repeat.WithoutIDs(text)) }

// system orders the documents in front of a conversation so that their beginning is in the engine's cache.
func (x *exchange) system(next *turn, b *body, it *item, tx *text, place orders.Key) string {
	found, ok := x.find(tx.value)
	if !ok || len(found.Docs) < 2 || len(found.Docs) > maxDocuments {
		return tx.value
	}
	x.found += len(found.Docs)
	// What stands in front of the documents decides which caches can be shared at all.
	scope := contextpilot.Scope{Model: b.model, Tenant: x.tenant, Replica: fmt.Sprintf("%016x", xxh3.HashString(found.Prefix))}
	if x.result.Shadow {
		scope.Replica += shadowScope
	}
	if next.scope == nil {
		next.scope = &scope
	}
	// The client's layout stays, as it does where nothing moves: prompts in two layouts have no prefix in common. A label is what the
	// model cites a document by, and whoever asked knows which document it was: it goes with it.
	order, sent := x.front(scope, place, blocksOf(found))
	if order == nil {
		return tx.value
	}
	x.place(it.from+tx.from+1, tx.to-tx.from-2, tx.value, found.Prefix, found.Suffix)
	next.leads = append(next.leads, x.lead(it.from, sent))
	out := x.reorder(found, order, false, &x.result.Sources.System, fmt.Sprintf("system[%d]", it.message), tx.value)
	if out == tx.value {
		return out
	}
	return notes.Fence(out) // documents that were apart may make a note together, and labels do not count one by one any more
}

// ordered returns the order that was chosen for a place, or chooses one. Nil, which is not remembered, if the client has
// gone meanwhile. What shadow mode chooses is not sent, and nobody else's order.
func (x *exchange) ordered(place orders.Key, n int, choose func() []int) []int {
	if x.result.Shadow {
		defer x.stage.Ordered(n, false)
		return choose()
	}
	if order, ok := x.p.opt.Orders.Get(x.r.Context(), x.tenant, place); ok && len(order) == n {
		x.stage.Ordered(n, true)
		return order
	}
	order := choose()
	if order == nil {
		return nil
	}
	defer x.stage.Ordered(n, false)
	if winner := x.p.opt.Orders.Put(x.r.Context(), x.tenant, place, order); winner != nil {
		return winner
	}
	return order
}

// plan plans one prompt, together with those that arrive at the same time if that is wanted; not ok: ctx has ended.
func (p *Proxy) plan(ctx context.Context, req contextpilot.Request) (plan contextpilot.Plan, ok bool) {
	if p.window == nil {
		return p.opt.Pilot.Plan(req), true
	}
	plan, err := p.window.Plan(ctx, req)
	return plan, err == nil
}

// reorder puts found documents into another order, if it is one: in the recorded layout, or each with all that stands with it.
// changed counts the texts of this source that do not stay as they are.
func (x *exchange) reorder(found extract.Found, order []int, rebuilt bool, changed *int, source, as string) string {
	if len(order) != len(found.Docs) || slices.IsSorted(order) {
		return as
	}
	original := make([]int, len(order))
	for i := range original {
		original[i] = i
	}
	x.result.Reordered = true
	x.result.Documents += len(order)
	*changed++
	x.result.Details = append(x.result.Details, detail{Source: source, Count: len(order), Original: original, Reordered: order})
	if rebuilt {
		return found.Rebuild(order)
	}
	return found.Permute(order)
}

// tool plans a tool result: the first of several documents is ordered, in later ones those that were shown are left out,
// and a single document that was shown becomes a reference.
func (x *exchange) tool(next *turn, t *talk, it *item, tx *text, place orders.Key) string {
	found, ok := x.find(tx.value)
	if !ok || len(found.Docs) < 2 || len(found.Docs) > maxDocuments {
		return x.single(next, t, tx)
	}
	x.found += len(found.Docs)
	source := fmt.Sprintf("tool_result[%d]", it.message)
	defer func() {
		for _, d := range found.Docs {
			c := contentOf(d.Text)
			t.shown[c] = true
			next.shown = append(next.shown, c)
		}
	}()
	if !t.multi {
		t.multi = true
		keys := make([]content, len(found.Docs))
		for i, d := range found.Docs {
			keys[i] = contentOf(d.Key)
		}
		order := x.ordered(place, len(keys), func() []int {
			defer x.p.opt.Memory.Settle()
			return x.p.toolIndex(x.tenant, &x.control, x.result.Shadow).order(x.r.Context(), keys)
		})
		return notes.Fence(x.reorder(found, order, found.Plain(), &x.result.Sources.Tools, source, tx.value))
	}
	return x.leaveOut(next, t, found, source, tx.value)
}

// leaveOut drops the documents that stand further up already.
func (x *exchange) leaveOut(next *turn, t *talk, found extract.Found, source, as string) string {
	var keep []int
	drop := map[int]bool{}
	for i, d := range found.Docs {
		if drop[i] = t.shown[contentOf(d.Text)]; !drop[i] {
			keep = append(keep, i)
		}
	}
	gone := len(found.Docs) - len(keep)
	if gone == 0 {
		return as
	}
	x.result.Sources.Tools++
	x.result.Deduplicated += gone
	x.result.Details = append(x.result.Details, detail{Source: source, Count: max(len(keep), 1), Deduped: gone})
	if len(keep) > 0 {
		if found.Plain() {
			return notes.Fence(found.Rebuild(keep))
		}
		return notes.Fence(found.Without(drop))
	}
	if rest := found.Without(drop); notes.Fence(rest) != rest {
		return notes.Fence(rest) // what stood around the documents would make a note beside ours
	}
	chars := utf8.RuneCountInString(as)
	note := notes.AllDocuments(gone, chars)
	x.result.Slimmed += gone
	next.cut.before += chars
	next.cut.after += utf8.RuneCountInString(note)
	return found.Collapse(note)
}

// shortText is the number of characters below which a repeated tool result is not worth a reference.
const shortText = 100

// single replaces a tool result that equals an earlier one of another call.
func (x *exchange) single(next *turn, t *talk, tx *text) string {
	if utf8.RuneCountInString(tx.value) < shortText || tx.toolID == "" {
		return tx.value
	}
	c := contentOf(tx.value)
	first, ok := t.calls[c]
	if !ok {
		id := strings.Clone(tx.toolID)
		t.calls[c] = id
		next.single = append(next.single, single{content: c, toolID: id})
		return tx.value
	}
	if first == tx.toolID {
		return tx.value
	}
	x.result.Deduplicated++
	return notes.Duplicate(first)
}

// lines replaces blocks of lines that stand further up.
func (x *exchange) lines(at *turn, t *talk, it *item, tx *text, value string) string {
	next := repeat.Text{Text: value, Message: it.message}
	switch {
	case x.dialect == anthropic, x.dialect == responses && tx.role != tool, tx.list && tx.role != assistant:
		return value
	case tx.role == system:
		next.Kind, next.Label = repeat.System, repeat.SystemPrompt
	case tx.role == tool:
		next.Kind, next.Label = repeat.ToolResult, notes.Tool(tx.tool, repeat.SystemPrompt, repeat.UserMessage, repeat.AssistantMessage)
	case tx.role == user:
		next.Label = repeat.UserMessage
	case tx.role == assistant:
		next.Kind, next.Label = repeat.Assistant, repeat.AssistantMessage
	default:
		return value
	}
	var r repeat.Result
	out, err := t.lines.Shorten(x.r.Context(), next, x.p.opt.Modulus, &r)
	if err != nil {
		return value // the caller asks the context, too
	}
	at.cut.add(cut{
		blocks: blocks{Deduped: r.BlocksDeduped, Total: r.BlocksTotal, System: r.SystemBlocksMatched, Saved: r.CharsSaved},
		before: r.CharsBefore, after: r.CharsAfter,
	})
	return out
}
