package prefixdiff

import (
	"cmp"
	"slices"
	"strings"
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
	Was, Is    string // the texts around the difference, if texts are kept or can be loaded; "" where there is something else
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
// was, from any goroutine, but from one at a time; and again, if See has added something since.
func (r *Request) Explain() (Finding, bool) {
	if r.nothingLost() {
		return Finding{}, false
	}
	pairs, first := r.pairs()
	goesOn := continued(pairs)
	var best candidate
	for i, c := range pairs {
		if i != first && (i != 0 || !r.like) {
			continue
		}
		d, differ := c.compare()
		if more := c.lcp - d.common; more > 0 {
			d.common, d.recurs = c.lcp, max(d.recurs-more, 0)
		}
		if differ && (!goesOn || c.inFront(&d)) && c.counts(&d) && (best.pair == nil || better(&d, &best.difference)) {
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
	first, r.common = -1, -1
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

// Nearest returns the number of the earlier prompt with the longest common prefix, and the tokens of that.
func (r *Request) Nearest() (number, tokens int, ok bool) {
	pairs, first := r.pairs()
	if first < 0 {
		return 0, 0, false
	}
	return int(pairs[first].number), r.common, true
}

// continued reports whether the prompt is the next turn of an earlier one, whose prompt it begins with. What its messages have in common
// with those of other conversations is no loss then.
func continued(pairs []*pair) bool {
	return slices.ContainsFunc(pairs, func(c *pair) bool {
		n := len(c.a)
		if n == 0 || c.part() != n || c.a[n-1].turn == Front || c.a[n-1].role == System {
			return false
		}
		answers, last := 0, User
		for i := n; i < len(c.b); i++ {
			if role := c.b[i].role; role == Assistant && last != Assistant {
				answers++
			}
			last = c.b[i].role
		}
		return answers == 1
	})
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
	s, ok := x.memory.prompt(n)
	x.mu.Unlock()
	if !ok {
		return nil, false
	}
	c.a = s.views
	if x.cfg.KeepTexts {
		c.text = func(i int) string { return s.views[i].text }
	}
	return c, true
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
			if d.pair.a[d.part].kind != p.Kind { // the system text is not what a tool was
				f.Was = ""
			}
		}
	}
	return f
}

// quotes returns what stands around byte at of two texts.
func quotes(is, was string, at int) (string, string) {
	from := max(0, at-20)
	cut := func(s string) string {
		return strings.ToValidUTF8(s[min(from, len(s)):min(len(s), from+maxQuote)], "")
	}
	return cut(is), cut(was)
}
