package contextpilot

import (
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/contextpilot/internal/tree"
)

// draft is a request on its way through the stages.
type draft struct {
	plan  Plan
	ids   []identified // by index into Request.Blocks
	place []int        // blocks to be sent in full, in retrieval order
	order []int        // place in the order to send
	refs  []Item
	// place is split into blocks in front, those that the policy orders, and blocks at the end, see Limits.
	pinned, free, last []int
	gate               gate
	behind             Position               // where the request goes on
	fits               bool                   // all that was shown up to there is visible
	start              []tree.Elem            // path in front of this turn's blocks
	visible            visible                // in the messages that are being sent
	shown              map[content]shownBlock // by mark: the request's blocks that are visible and were shown
	head               int                    // Request.HeadTokens
	tail               []tree.Elem            // notes and question, see closeWith
	rest               int32                  // tokens of their end, which is the request's own
	room               int                    // tokens of Request.Room that are left for the order note
	tokens             []int32
	prompt             []tree.Elem // the whole, see path
	gain               int         // prompt tokens read from the cache that retrieval order would not find
}

// begin makes the draft that of a request, whose Blocks it keeps.
func (d *draft) begin(req Request) {
	d.behind = req.Behind
	req.Prior, req.Behind = nil, Position{}
	d.plan = Plan{RequestID: req.ID, Session: req.Session, Scope: req.Scope, req: req}
	d.head = max(req.HeadTokens, 0)
}

// recycle makes the draft ready for another request, keeping what it has allocated that no plan refers to.
func (d *draft) recycle() {
	clear(d.ids)
	*d = draft{
		ids: d.ids[:0], place: d.place[:0], order: d.order[:0], tokens: d.tokens[:0],
		start: d.start[:0], tail: d.tail[:0], prompt: d.prompt[:0],
	}
}

// query is what the policy is asked about the blocks that it may order.
func (d *draft) query(dst []Candidate) []Candidate {
	for _, i := range d.free {
		b := &d.plan.req.Blocks[i]
		dst = append(dst, Candidate{Key: d.ids[i].key, ID: d.ids[i].id, Tokens: int(d.tokens[i]), Score: b.Score})
	}
	return dst
}

// path is the whole prompt: blocks, notes and question, and a step of the request's own at the end for the answer.
// It is valid as long as the draft.
func (d *draft) path() []tree.Elem {
	p := slices.Grow(d.prompt[:0], len(d.start)+len(d.order)+len(d.tail)+1)
	p = append(p, d.start...)
	for _, i := range d.order {
		p = append(p, tree.Elem{Key: uint64(d.ids[i].key), Tokens: d.tokens[i]})
	}
	p = append(p, d.tail...)
	d.prompt = append(p, tree.Elem{Key: ownKey(d.plan.RequestID), Tokens: d.rest})
	return d.prompt
}

// ownKey stands for what is a request's own, at the end of its prompt.
func ownKey(id string) uint64 { return xxh3.HashStringSeed(id, tailSeed) }

// closeWith sets what stands behind the blocks: equal questions behind equal blocks share their tokens, too. They are
// followed in pieces of about one engine block, each with its share of the text's tokens; what is less than a piece, or behind
// maxPieces of them, is taken to be the request's own.
func (d *draft) closeWith(text string, count func(string) int) {
	d.tail = d.tail[:0]
	total, size := int64(tokenCount(count(text))), int64(max(len(text), 1))
	at := 0
	for len(text)-at > pieceBytes && len(d.tail) < maxPieces {
		end := strings.IndexAny(text[at+pieceBytes:], " \n")
		if end < 0 {
			break
		}
		next := at + pieceBytes + end
		tokens := int32(total*int64(next)/size - total*int64(at)/size)
		d.tail = append(d.tail, tree.Elem{Key: xxh3.HashStringSeed(text[at:next], pieceSeed), Tokens: tokens})
		at = next
	}
	d.rest = int32(total - total*int64(at)/size)
}

const (
	pieceBytes = 64 // the least length of a piece of text, about 16 tokens
	maxPieces  = 256
)

const (
	tailSeed  = 0x7461696c
	pieceSeed = 0x70696563
)

// plain makes the draft retrieval order: every block in full, no notes.
func (d *draft) plain(dedup Dedup) {
	d.refs, d.plan.Hint, d.plan.Echo = nil, "", nil
	d.plan.LeftOut, d.plan.Why = nil, Why{}
	d.pinned, d.last, d.gate = nil, nil, gate{}
	d.place = identity(d.place[:0], len(d.plan.req.Blocks))
	d.free = d.place
	d.order = append(d.order[:0], d.place...)
	if len(d.ids) != len(d.plan.req.Blocks) {
		d.ids = identify(d.ids, d.plan.req.Blocks, dedup)
	}
	if len(d.tokens) != len(d.plan.req.Blocks) {
		d.tokens = slices.Grow(d.tokens[:0], len(d.plan.req.Blocks))[:len(d.plan.req.Blocks)]
		clear(d.tokens)
	}
}
