package prefixdiff

import (
	"cmp"
	"time"
)

// Finding is a loss: a prompt was computed again that the engine had in its cache, or could have had.
type Finding struct {
	Number     int    // of the later prompt
	Against    int    // of the earlier prompt
	Cause      Cause  // why they part
	Path       string // where, in the later request's JSON
	Part       Kind   // what stands there
	Turn       int    // the message, from 0; Front: none
	Offset     int    // bytes in the text at Path
	Token      int    // tokens in front of the difference, estimated
	LostTokens int    // tokens behind it that the earlier prompt has, too, estimated
	Was, Is    string // the texts around the difference, if texts are kept or can be loaded
}

// Prices are what a lost token costs.
type Prices struct {
	Input  float64 // of a million tokens
	Cached float64 // of a million tokens from the cache
	Speed  float64 // tokens that the engine computes in a second; 0: not known
}

// Cost returns the money and the time that lost tokens cost.
func (p Prices) Cost(tokens int) (money float64, wait time.Duration) {
	money = float64(tokens) * max(p.Input-p.Cached, 0) / 1e6
	if p.Speed > 0 {
		wait = time.Duration(float64(tokens) / p.Speed * float64(time.Second))
	}
	return money, wait
}

// Explain says whether and why the prompt has less in common with the earlier ones than it could have. It may be called once Insert
// was, from any goroutine, but from one at a time.
func (r *Request) Explain() (Finding, bool) {
	if r.nothingLost() {
		return Finding{}, false
	}
	pairs, first := r.pairs()
	var best candidate
	for i, c := range pairs {
		if i != first && (i != 0 || !r.like) {
			continue
		}
		d, differ := c.compare()
		if more := c.lcp - d.common; more > 0 {
			d.common, d.recurs = c.lcp, max(d.recurs-more, 0)
		}
		if differ && c.counts(&d) && (best.pair == nil || better(&d, &best.difference)) {
			best = candidate{difference: d, pair: c}
		}
	}
	if best.pair != nil && best.common < r.common && best.common+best.recurs <= r.common+max(leastSure, r.common/8) {
		best.pair = nil // the engine has nearly as much of another request
	}
	if best.pair != nil && !r.seen.reused(&best.difference) {
		return r.finding(&best), true
	}
	if first < 0 {
		return Finding{}, false
	}
	if cause, ok := r.missed(r.common, pairs[first].number); ok {
		return Finding{Number: r.number, Against: int(pairs[first].number), Cause: cause, Turn: Front, LostTokens: r.common}, true
	}
	return Finding{}, false
}

// Common returns the tokens of the longest common prefix with an earlier prompt.
func (r *Request) Common() int {
	if r.common < 0 {
		r.pairs()
	}
	return r.common
}

// nothingLost reports whether it is clear without a comparison that only the end is new: the prompt goes on in a message of the user, and
// no earlier prompt has any of what follows.
func (r *Request) nothingLost() bool {
	switch {
	case len(r.near) == 0:
		r.common = 0
		return true
	case r.seen != Seen{} || r.like:
		return false
	case r.known == len(r.chunks):
		return true
	}
	part := &r.prompt.Parts[r.chunks[r.known].part]
	rest := 0
	for _, c := range r.chunks[r.known:] {
		rest += int(c.bytes)
	}
	return part.Role == User && part.Turn != Front && rest > fewBytes // short texts may have no whole chunk in common
}

// fewBytes is the length up to which texts may have much in common and yet no chunk.
const fewBytes = 4 << 10

// pairs returns this prompt beside the earlier ones, and which of these has the longest prefix; -1: there is none.
func (r *Request) pairs() (pairs []*pair, first int) {
	first = -1
	for i, n := range r.near {
		c, ok := r.pair(n)
		if !ok {
			r.like = r.like && i > 0
			continue
		}
		if c.lcp = c.common(); c.lcp > r.common {
			r.common, first = c.lcp, len(pairs)
		}
		pairs = append(pairs, c)
	}
	r.common = max(r.common, 0)
	return pairs, first
}

// candidate is a difference from an earlier prompt.
type candidate struct {
	difference
	pair *pair
}

// better reports whether the first difference explains more. With equal ones, the longer prefix counts, then the later prompt,
// which is looked at first.
func better(d, than *difference) bool {
	return cmp.Or(cmp.Compare(d.common+d.recurs, than.common+than.recurs), cmp.Compare(d.common, than.common)) > 0
}

// pair returns the earlier prompt beside this one.
func (r *Request) pair(n uint32) (*pair, bool) {
	x := r.x
	c := &pair{splitter: x.splitter, number: n, p: &r.prompt, b: r.views, toks: r.tokens}
	if x.cfg.Load != nil {
		earlier, err := x.cfg.Load(int(n))
		if err != nil {
			return nil, false
		}
		c.a = x.see(&earlier)
		c.text = func(i int) string { return earlier.Parts[i].Text }
		return c, true
	}
	x.mu.Lock()
	s, ok := x.prompts.get(n)
	x.mu.Unlock()
	if !ok {
		return nil, false
	}
	c.a = s.views
	if s.texts != nil {
		c.text = func(i int) string { return s.texts.Parts[i].Text }
	}
	return c, true
}

// Least numbers of tokens that are worth a word: in the history, where nothing ought to change, and in the last message, which is new as
// a rule: there in a template that was filled in, and behind a system text.
const (
	leastName    = 3 // in the front: a time or an identifier is another one in each request, and counts whatever follows
	leastFront   = 8 // the same for other words
	leastHistory = 4
	leastAgain   = 512 // where a message of the user differs
	leastSure    = 16
	leastEnd     = 32
)

// counts reports whether a difference is a loss. Two requests that have little in common are two programs, or two conversations.
func (c *pair) counts(d *difference) bool {
	part := min(d.part, len(c.b)-1)
	if part < 0 {
		return false
	}
	b := &c.b[part]
	switch {
	case b.turn == Front || b.role == System && !c.spoken(part):
		if !c.sameProgram() {
			return false
		}
		switch {
		case d.recurs > 0 && c.goesOn(d):
			return true
		case d.certain && d.cause == UserName: // a user's own requests all have the same name
			return d.recurs >= leastName
		}
		return d.certain || d.recurs >= leastFront && d.coverage >= 0.5
	case b.turn >= c.tail():
		return c.endCounts(d, part)
	}
	if c.changed(d) {
		return true
	}
	switch {
	case d.recurs < leastHistory:
		return false
	case c.goesOn(d):
		return true
	case d.certain:
		return d.coverage >= 0.5 && c.sameness(d, part) >= 0.9
	}
	if b.role == User { // other words of a user are another conversation, unless nearly everything behind them is the same
		return d.recurs >= leastAgain && d.coverage >= 0.9 && c.similar(d.part)
	}
	return d.coverage >= 0.5 && c.similar(d.part)
}

// endCounts reports whether a difference in the last message is a loss. That message is new as a rule, also where it has documents of
// another one behind another question. Without a system text it is a template that was filled in.
func (c *pair) endCounts(d *difference, part int) bool {
	filledIn := len(c.systemWords(c.b, false)) == 0
	least := leastEnd
	if d.certain && filledIn {
		least = leastSure
	}
	same := 0.9
	if d.certain && filledIn {
		same = 0.6 // the question is another one, too
	}
	if d.recurs < least || d.coverage < 0.5 || c.sameness(d, part) < same {
		return false
	}
	return d.certain || filledIn && d.coverage >= 0.8
}

// sameness says how much of the part behind the difference is an earlier text, as a share.
func (c *pair) sameness(d *difference, part int) float64 {
	all := func(yes bool) float64 {
		if yes {
			return 1
		}
		return 0
	}
	switch {
	case d.cause == DocumentOrder, d.cause == MapOrder, d.cause == ToolOrder, d.cause == WhiteSpace:
		return 1
	case d.part >= len(c.a) || c.a[d.part].kind != c.b[part].kind:
		return all(d.cause != Image) // an image that is gone leaves the rest
	}
	switch c.b[part].kind {
	case Media, Ident, Name, Opaque:
		return 1
	}
	c.describe(d.part)
	x, y := c.a[d.part].words, c.b[part].words
	n := sameWords(x, y)
	x, y = x[n:], y[n:]
	i, j := align(x, y)
	x, y = x[i:], y[j:]
	if len(y) < shingle {
		return all(n >= len(y))
	}
	return alike(x, y)
}

// sameProgram reports whether the system texts are two versions of one text. Programs may have tools in common.
func (c *pair) sameProgram() bool {
	x, y := c.systemWords(c.a, true), c.systemWords(c.b, false)
	if len(x) == 0 || len(y) == 0 {
		return len(x) == len(y)
	}
	if len(x) <= fewWords || len(y) <= fewWords { // words of a short text stand in any long one
		return bag(x, y) >= 0.5 && bag(y, x) >= 0.5
	}
	return share(x, y) >= 0.5 || share(y, x) >= 0.5
}

// systemWords returns the words of the system text.
func (c *pair) systemWords(views []view, earlier bool) []word {
	var words []word
	for i := range views {
		v := &views[i]
		if v.kind != Text || v.role != System {
			if v.turn != Front && v.role != System {
				break
			}
			continue
		}
		if earlier {
			c.describeA(i)
		} else {
			c.splitter.describe(v, &c.p.Parts[i])
		}
		words = append(words, v.words...)
	}
	return words
}

// fewWords is the length up to which texts are compared by single words.
const fewWords = 40

// alike is the part of the words of y that x has, too: in runs, or one by one if y is short.
func alike(x, y []word) float64 {
	if len(y) > fewWords {
		return share(x, y)
	}
	return bag(x, y)
}

// bag is the part of the words of y that x has, too.
func bag(x, y []word) float64 {
	counts := map[word]int{}
	for _, w := range x {
		counts[w&^spaceBit]++
	}
	n, all := 0, 0
	for _, w := range y {
		if c := w.class(); c == sign || c == blank {
			continue
		}
		all++
		if k := w &^ spaceBit; counts[k] > 0 {
			counts[k]--
			n++
		}
	}
	if all == 0 {
		return 1
	}
	return float64(n) / float64(all)
}

// changed reports whether an earlier message was cut, or has lost or gained a text at one of its ends, so that nothing behind it needs to
// be in the earlier prompt: an answer or a result of a tool that stops early, or goes on with a few words that say so; documents or a
// reminder that are only in the last message. The engine has the answer to it in its cache, too.
func (c *pair) changed(d *difference) bool {
	if d.part >= len(c.a) || d.part >= len(c.b) {
		return false
	}
	a, b := &c.a[d.part], &c.b[d.part]
	if a.kind != Text && a.kind != Arguments || b.kind != a.kind || a.role != b.role || a.turn != b.turn || b.role == System {
		return false
	}
	c.describe(d.part)
	x, y := a.words, b.words
	n := sameWords(x, y)
	const marker = 16
	switch {
	case b.role == User:
		last := c.a[len(c.a)-1].turn
		if a.turn != last || !within(x, y) && !within(y, x) {
			return false
		}
	case len(y)-n > marker || len(x)-n <= len(y)-n || n < marker && (b.role != Tool || !c.sameCall(d.part)):
		return false
	}
	if d.recurs == 0 {
		for j := d.part; j < len(c.b) && c.b[j].turn <= b.turn+1; j++ {
			if c.b[j].role == Assistant {
				d.recurs += c.tokens(j)
			}
		}
	}
	return true
}

// within reports whether all words of a text stand in another one, in a row.
func within(long, short []word) bool {
	const least = 3
	short = trimBlank(short)
	if len(short) < least || len(long) <= len(short) {
		return false
	}
	for i := 0; i+len(short) <= len(long); i++ {
		j := 0
		for j < len(short) && long[i+j].same(short[j]) {
			j++
		}
		if j == len(short) {
			return true
		}
	}
	return false
}

// sameCall reports whether part i is, in both prompts, the result of the same call of a tool.
func (c *pair) sameCall(i int) bool {
	ident := func(views []view) uint64 {
		for j := range views {
			if v := &views[j]; v.kind == Ident && v.turn == views[i].turn {
				return v.hash
			}
		}
		return 0
	}
	h := ident(c.b)
	return h != 0 && h == ident(c.a)
}

// spoken reports whether a message that is not of the system stands in front of part i.
func (c *pair) spoken(i int) bool {
	for j := range i {
		if v := &c.b[j]; v.turn != Front && v.role != System {
			return true
		}
	}
	return false
}

// tail is the turn of the first message behind the last answer.
func (c *pair) tail() int32 {
	end := len(c.b)
	for end > 0 && c.b[end-1].role == Assistant { // the beginning of an answer
		end--
	}
	for i := end - 1; i >= 0; i-- {
		if c.b[i].role == Assistant {
			return c.b[i].turn + 1
		}
	}
	for i := range c.b {
		if v := &c.b[i]; v.turn != Front && v.role != System {
			return v.turn
		}
	}
	return 0
}

// maxQuote is the length in bytes of a quoted text.
const maxQuote = 120

// finding makes the report of a difference.
func (r *Request) finding(d *candidate) Finding {
	f := Finding{
		Number: r.number, Against: int(d.pair.number), Cause: d.cause, Path: d.path, Turn: Front,
		Offset: d.at, Token: d.common, LostTokens: d.recurs,
	}
	if d.part < len(r.prompt.Parts) {
		p := &r.prompt.Parts[d.part]
		f.Part, f.Turn, f.Offset = p.Kind, p.Turn, p.At+d.at
		if d.pair.text != nil && d.part < len(d.pair.a) {
			f.Is, f.Was = quotes(p.Text, d.pair.text(d.part), d.at)
		}
	}
	return f
}

// quotes returns what stands around byte at of two texts.
func quotes(is, was string, at int) (string, string) {
	from := max(0, at-20)
	cut := func(s string) string {
		return s[min(from, len(s)):min(len(s), from+maxQuote)]
	}
	return cut(is), cut(was)
}
