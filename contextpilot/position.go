package contextpilot

import (
	"iter"
	"math"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/contextpilot/internal/tree"
	"github.com/ragpilot/ragpilot/internal/prompt/markup"
)

// Position is a place behind prompts that were planned: where the next turn of their conversation goes on. It says what the
// engine may hold in front of that turn, and which blocks those turns have shown. [Plan].End is the one behind a plan. The zero
// Position is the beginning. A Position never changes, and may be used any number of times: a turn that is asked again has the
// position of the first attempt. It takes some 16 bytes for each block in front of it and 112 for each turn, which the
// positions of one conversation share.
type Position struct{ last *segment }

// segment is a turn, or texts between turns.
type segment struct {
	before  *segment
	path    []tree.Elem // behind before
	sent    int         // the turn has sent so many blocks in full, with which path begins
	request string      // of the turn
	kept    []shownBlock
	turn    int // planned turns up to here
	length  int // of all paths up to here
	blocks  int // shown up to here, one that was sent again counts twice
	depth   int // steps up to here
}

// shownBlock is a block that a turn has sent in full.
type shownBlock struct {
	key     Key
	turn    int
	request string
}

// Turn returns how many turns were planned up to here.
func (p Position) Turn() int {
	if p.last == nil {
		return 0
	}
	return p.last.turn
}

// Answered returns the position behind an answer of so many tokens, which the engine caches behind the prompt.
func (p Position) Answered(tokens int) Position {
	if p.last == nil || tokens <= 0 || len(p.last.path) == 0 {
		return p
	}
	s := *p.last
	s.path = slices.Clone(s.path)
	end := &s.path[len(s.path)-1]
	end.Tokens = longer(end.Tokens, tokens)
	return Position{&s}
}

// Behind returns the position behind one more message: at is the position in front of it, and text is what is sent. For a message that
// Plan did not lay out, plan is nil. For one that it did, and whose text or place has changed since, as after a cut, plan is the message's:
// later turns may refer to those of its blocks that the text shows. The index does not expect the text in the engine's cache.
func (p *Pilot) Behind(at Position, plan *Plan, text string) Position {
	s := at.next()
	s.path = []tree.Elem{unseen([]string{text}, p.cfg.Tokenizer.Count)}
	if plan != nil {
		s.turn = max(s.turn, plan.Turn)
		s.kept = plan.shownIn(text)
	}
	return s.position()
}

// Restore is Behind for a message whose plan is lost, as after a restart. Later turns may refer to all blocks that the text shows. So use
// it for users' messages only, and never for the results of tools.
func (p *Pilot) Restore(at Position, text string) Position {
	s := at.next()
	s.path = []tree.Elem{unseen([]string{text}, p.cfg.Tokenizer.Count)}
	for r := range markup.Regions(text) {
		s.kept = append(s.kept, shownBlock{blockKey(&r), s.turn + 1, ""})
	}
	if len(s.kept) > 0 {
		s.turn++
	}
	return s.position()
}

// shownIn returns the plan's blocks that stand in a text, each once.
func (p *Plan) shownIn(text string) (out []shownBlock) {
	for r := range markup.Regions(text) {
		key := blockKey(&r)
		own := func(it Item) bool {
			label := it.Label
			if it.Ref != nil {
				label = it.Ref.Label
			}
			return label == r.Label && it.Index < len(p.req.Blocks) && p.req.Blocks[it.Index].Text == r.Text
		}
		if slices.ContainsFunc(p.Items, own) && !slices.ContainsFunc(out, func(b shownBlock) bool { return b.key == key }) {
			out = append(out, shownBlock{key, p.Turn, p.RequestID})
		}
	}
	return out
}

// next returns a step behind the position that has nothing of its own yet.
func (p Position) next() *segment {
	s := &segment{before: p.last}
	if p.last != nil {
		s.length, s.turn, s.blocks, s.depth = p.last.length, p.last.turn, p.last.blocks, p.last.depth
	}
	s.depth++
	return s
}

// position completes a step that has its path and its blocks. One with too many in front of it takes over what they have, as far
// as it is bounded, too.
func (s *segment) position() Position {
	s.length += len(s.path)
	s.blocks += s.sent + len(s.kept)
	p := Position{s}
	if s.depth <= maxTurns && s.blocks <= maxShown && s.length <= maxPath {
		return p
	}
	out := &segment{turn: s.turn, depth: 1, path: p.path(nil)}
	seen := make(map[Key]bool, maxShown)
	for b := range p.shown() {
		if len(out.kept) == maxShown*3/4 { // the next turns find room
			break
		}
		if !seen[b.key] {
			seen[b.key] = true
			out.kept = append(out.kept, b)
		}
	}
	slices.Reverse(out.kept)
	if len(out.path) > maxPath { // the next turn starts as if its history were unknown
		sum := tree.Elem{Key: out.path[len(out.path)-1].Key}
		for _, e := range out.path {
			sum.Tokens = longer(sum.Tokens, int(e.Tokens))
		}
		out.path = []tree.Elem{sum}
	}
	out.length, out.blocks = len(out.path), len(out.kept)
	return Position{out}
}

// shown walks over the blocks that were shown, the last one first.
func (p Position) shown() iter.Seq[shownBlock] {
	return func(yield func(shownBlock) bool) {
		for s := p.last; s != nil; s = s.before {
			for _, e := range slices.Backward(s.path[:s.sent]) {
				if !yield(shownBlock{Key(e.Key), s.turn, s.request}) {
					return
				}
			}
			for _, b := range slices.Backward(s.kept) {
				if !yield(b) {
					return
				}
			}
		}
	}
}

// path returns the whole path up to the position, in the array of dst.
func (p Position) path(dst []tree.Elem) []tree.Elem {
	if p.last == nil {
		return dst[:0]
	}
	at := p.last.length
	out := slices.Grow(dst[:0], at)[:at]
	for s := p.last; s != nil; s = s.before {
		at -= len(s.path)
		copy(out[at:], s.path)
	}
	return out
}

// unseen stands for texts of unknown blocks: one step that equals only itself.
func unseen(texts []string, tokens func(string) int) tree.Elem {
	e := tree.Elem{}
	for _, t := range texts {
		e.Key = xxh3.HashStringSeed(t, e.Key+1)
		e.Tokens = longer(e.Tokens, tokens(t))
	}
	return e
}

// longer adds tokens to a length, which does not wrap around.
func longer(length int32, tokens int) int32 {
	return int32(min(int64(length)+int64(tokenCount(tokens)), math.MaxInt32))
}

// end returns the position behind the draft's prompt, whose path is given.
func (d *draft) end(path []tree.Elem) Position {
	if !d.fits {
		d.behind = d.seen()
	}
	s := d.behind.next()
	s.path, s.sent = slices.Clone(path[len(d.start):]), len(d.order)
	s.turn, s.request = d.plan.Turn, d.plan.RequestID
	return s.position()
}

// seen returns the position behind a history that does not show all that the turns up to there have shown.
func (d *draft) seen() Position {
	if len(d.start) == 0 {
		return Position{}
	}
	s := &segment{depth: 1, path: slices.Clone(d.start)}
	for b := range d.behind.shown() {
		if d.visible.has(b.key) {
			s.kept = append(s.kept, b)
		}
	}
	slices.Reverse(s.kept)
	return s.position()
}
