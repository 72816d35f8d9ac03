package contextpilot

import (
	"slices"
	"sort"
	"strings"
	"unicode"

	"github.com/ragpilot/ragpilot/internal/prompt/markup"
)

// Top says what is done so that the block that the retriever ranks first, of those that are sent in full, stands next to the
// question, where many models read best. Nothing is done if it stands last already, if the request is Fixed, or after a fault.
type Top uint8

const (
	// TopAuto is the default: TopAnywhere.
	TopAuto Top = iota
	// TopAnywhere leaves the block where the policy puts it.
	TopAnywhere
	// TopMoves puts the block behind the others.
	TopMoves
	// TopEchoes leaves the block and shows it once more behind the others, see Echo.
	TopEchoes
	// TopNear does what is expected to cost fewer computed tokens in this request: TopMoves or TopEchoes.
	TopNear
)

// EchoWhole as Config.EchoTokens echoes whole blocks.
const EchoWhole = -1

// DefaultEchoTokens is the length of an echo in tokens, at most.
const DefaultEchoTokens = 24

// Echo is a block, or a part of it, that is shown once more behind the blocks and references, in front of the order note. It is the one
// exception to the rule that a prompt has each block once.
type Echo struct {
	Index int    // into Request.Blocks, of a block that Items has in full
	Label string // the block's own
	Text  string // word for word in the block's text
	// Tokens is the length of the echo as it is rendered. They are always computed.
	Tokens int
}

// layout is a way to send the blocks of a draft. found are the prompt tokens that it is expected to find in the cache, less those of
// its echo: of two layouts the one with more computes less.
type layout struct {
	order []int
	echo  *Echo
	found int
}

// nearest brings the top block next to the question. resident returns the prompt tokens that an order of the blocks finds in the cache.
func (p *Pilot) nearest(d *draft, resident func(order []int) int) {
	d.plan.Echo = nil
	if !p.strays(d) {
		return
	}
	best := p.bringNear(d, d.place[0], resident)
	if p.cfg.Top == TopNear && len(d.start) == 0 {
		if plain := resident(d.place); plain > d.head && plain >= best.found { // nothing is gained by another order
			best = layout{order: d.place}
		}
	}
	d.order = append(d.order[:0], best.order...)
	if d.plan.Echo = best.echo; best.echo != nil && d.plan.req.Room != 0 {
		d.room -= best.echo.Tokens
	}
}

// strays reports whether the top block stands where something is to be done about it.
func (p *Pilot) strays(d *draft) bool {
	if p.cfg.Top <= TopAnywhere || d.plan.req.Fixed || len(d.place) == 0 || len(d.order) < 2 {
		return false
	}
	top := d.place[0]
	asRetrieved := p.cfg.Top == TopNear && d.order[0] == top && len(d.start) == 0
	return d.order[len(d.order)-1] != top && !asRetrieved
}

// bringNear chooses between the ways that the configuration and the limits allow.
func (p *Pilot) bringNear(d *draft, top int, resident func(order []int) int) layout {
	stay := layout{order: d.order, found: resident(d.order)}
	var moved layout
	mayMove := p.cfg.Top != TopEchoes && p.mayMove(d, top)
	if mayMove {
		moved.order = append(slices.DeleteFunc(slices.Clone(d.order), func(i int) bool { return i == top }), top)
		moved.found = resident(moved.order)
		if p.cfg.Top == TopMoves || moved.found >= stay.found {
			return moved
		}
	}
	if !d.plan.req.NoEcho && p.cfg.Top != TopMoves {
		if stay.echo = p.echo(d, top); stay.echo != nil {
			stay.found -= stay.echo.Tokens
		}
	}
	if mayMove && (stay.echo == nil || moved.found >= stay.found) {
		return moved
	}
	return stay
}

// nearestOfAll brings the top block of each draft of a batch next to its question. What an order is expected to find in the cache are the
// blocks that it shares with the drafts that run right before and behind it. moved reports whether an order has changed.
func (p *Pilot) nearestOfAll(drafts []*draft, schedule []int) (moved bool) {
	for at, i := range schedule {
		d := drafts[i]
		was := slices.Clone(d.order)
		p.nearest(d, func(order []int) (tokens int) {
			for _, next := range []int{at - 1, at + 1} {
				if next >= 0 && next < len(schedule) {
					tokens = max(tokens, sharedFront(d, order, drafts[schedule[next]]))
				}
			}
			return tokens
		})
		moved = moved || !slices.Equal(was, d.order)
	}
	return moved
}

// sharedFront returns the tokens of the blocks with which both orders begin.
func sharedFront(d *draft, order []int, other *draft) (tokens int) {
	for n, i := range order {
		if n == len(other.order) || d.ids[i].key != other.ids[other.order[n]].key {
			break
		}
		tokens += int(d.tokens[i])
	}
	return tokens
}

// mayMove reports whether the limits let the block stand last.
func (p *Pilot) mayMove(d *draft, top int) bool {
	l := &p.cfg.Limits
	return l.Group == nil && (l.MaxDisplacement == 0 || len(d.order)-1 <= l.MaxDisplacement) && slices.Contains(d.free, top)
}

// echo returns what to show of a block once more; nil if it does not fit.
func (p *Pilot) echo(d *draft, block int) *Echo {
	b := &d.plan.req.Blocks[block]
	text := b.Text
	if limit := p.cfg.EchoTokens; limit > 0 && int(d.tokens[block]) > limit {
		text = excerpt(text, d.plan.req.Query, limit, p.cfg.Tokenizer.Count)
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	e := &Echo{Index: block, Label: d.ids[block].label, Text: text}
	e.Tokens = p.cfg.Tokenizer.Count(renderEcho(d.plan.forms, e))
	if !d.fitsEcho(e) {
		return nil
	}
	return e
}

// fitsEcho reports whether the request's limits leave room for an echo.
func (d *draft) fitsEcho(e *Echo) bool {
	req := &d.plan.req
	if req.Room != 0 && e.Tokens > d.room {
		return false
	}
	if req.Budget <= 0 {
		return true
	}
	left := req.Budget - e.Tokens
	for _, i := range d.place {
		left -= int(d.tokens[i])
	}
	return left >= 0
}

func renderEcho(forms noteForms, e *Echo) string {
	return markup.RenderEcho(e.Label, e.Text, forms.in(e.Text))
}

// excerpt returns the run of whole sentences of a text with at most limit tokens that has most of the question's words; a word that
// many sentences have counts less. Of equals it is the first that begins with most of them. A sentence that is too long alone is cut behind
// a word.
func excerpt(text, question string, limit int, count func(string) int) string {
	parts := sentences(text)
	weights := weigh(text, parts, question)
	best, most := "", -1
	for from, part := range parts {
		end := part[0]
		for _, next := range parts[from:] {
			if count(strings.TrimSpace(text[part[0]:next[1]])) > limit {
				break
			}
			end = next[1]
		}
		run := strings.TrimSpace(text[part[0]:end])
		if run == "" {
			run = cutWords(strings.TrimSpace(text[part[0]:part[1]]), limit, count)
		}
		// Of runs with the same words, the one that begins with most of them.
		if worth := 2*weights.of(run) + weights.of(text[part[0]:part[1]]); worth > most {
			best, most = run, worth
		}
	}
	return best
}

// wordWeights are the weights of a question's words.
type wordWeights map[string]int

func (w wordWeights) of(text string) (sum int) {
	for word := range words(text) {
		sum += w[word]
	}
	return sum
}

// weigh gives each word of the question a weight that is divided by the number of sentences that have it.
func weigh(text string, parts [][2]int, question string) wordWeights {
	const unit = 1 << 16
	in := map[string]int{}
	for _, p := range parts {
		for w := range words(text[p[0]:p[1]]) {
			in[w]++
		}
	}
	weights := wordWeights{}
	for w := range words(question) {
		if n := in[w]; n > 0 {
			weights[w] = max(unit/n, 1)
		}
	}
	return weights
}

// cutWords returns the beginning of a text up to a space, with at most limit tokens; "" if the first word has more.
func cutWords(text string, limit int, count func(string) int) string {
	var ends []int // of words
	for i, r := range text {
		if unicode.IsSpace(r) {
			ends = append(ends, i)
		}
	}
	n := sort.Search(len(ends), func(i int) bool { return count(text[:ends[i]]) > limit })
	if n == 0 {
		return ""
	}
	return strings.TrimSpace(text[:ends[n-1]])
}

// words are the words of a text in lower case, without very short ones.
func words(text string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(w) > 2 {
			out[w] = true
		}
	}
	return out
}

// sentences returns where the sentences of a text begin and end.
func sentences(text string) (out [][2]int) {
	start := 0
	for i, r := range text {
		next := i + len(string(r))
		ends := r == '\n' || strings.ContainsRune("。！？", r) ||
			strings.ContainsRune(".!?", r) && (next == len(text) || text[next] == ' ' || text[next] == '\n')
		if ends {
			out = append(out, [2]int{start, next})
			start = next
		}
	}
	if start < len(text) {
		out = append(out, [2]int{start, len(text)})
	}
	return out
}
