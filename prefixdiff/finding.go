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
// was, from any goroutine.
func (r *Request) Explain() (Finding, bool) {
	var best *difference
	var against uint32
	var text func(int) string
	var known bool
	longest := -1
	for _, n := range r.near {
		c, ok := r.pair(n)
		if !ok {
			continue
		}
		d, differ := c.compare()
		longest = max(longest, d.common)
		if !differ || !c.counts(&d) {
			continue
		}
		if best == nil || better(&d, best) {
			best, against, text, known = &d, n, c.text, d.part < len(c.a)
		}
	}
	if best == nil || best.common+best.recurs <= longest {
		return Finding{}, false
	}
	return r.finding(best, int(against), known, text), true
}

// better reports whether the first difference explains more. With equal ones, the longer prefix counts, then the later prompt,
// which is looked at first.
func better(d, than *difference) bool {
	return cmp.Or(cmp.Compare(d.common+d.recurs, than.common+than.recurs), cmp.Compare(d.common, than.common)) > 0
}

// pair returns the earlier prompt beside this one.
func (r *Request) pair(n uint32) (*pair, bool) {
	x := r.x
	c := &pair{splitter: x.splitter, p: &r.prompt, b: x.see(&r.prompt)}
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

// Least numbers of tokens that are worth a word: in the front and in the history, where nothing ought to change, and in the last
// message, which is new as a rule.
const (
	leastHistory = 4
	leastSure    = 16
	leastEnd     = 32
)

// counts reports whether a difference is a loss. Two requests that have little in common are two programs, or two conversations.
func (c *pair) counts(d *difference) bool {
	if d.recurs < 1 {
		return false
	}
	part := min(d.part, len(c.b)-1)
	if part < 0 {
		return false
	}
	b := &c.b[part]
	switch {
	case b.turn == Front || b.role == System && !c.spoken(part):
		return d.coverage >= 0.5 || d.certain && d.coverage >= 0.2
	case b.turn >= c.tail():
		least := leastEnd
		if d.certain {
			least = leastSure
		}
		return d.recurs >= least && d.coverage >= 0.5
	}
	return d.recurs >= leastHistory && d.coverage >= 0.5 && (d.certain || c.similar(d.part) || c.goesOn(d))
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
func (r *Request) finding(d *difference, against int, known bool, text func(int) string) Finding {
	f := Finding{
		Number: r.number, Against: against, Cause: d.cause, Path: d.path, Turn: Front, Offset: d.at, Token: d.common, LostTokens: d.recurs,
	}
	if d.part < len(r.prompt.Parts) {
		p := &r.prompt.Parts[d.part]
		f.Part, f.Turn = p.Kind, p.Turn
		if text != nil && known {
			f.Is, f.Was = quotes(p.Text, text(d.part), d.at)
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
