package prefixdiff

import "slices"

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
	case c.inFront(d):
		if !c.sameProgram() {
			return false
		}
		switch {
		case d.recurs > 0 && c.goesOn(d):
			return true
		case d.certain && d.cause == UserName: // a user's own requests all have the same name
			return d.recurs >= leastName && d.coverage >= 0.5
		case d.part < len(c.b) && c.b[d.part].kind == Setting && d.recurs < leastFront:
			return false
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
		return d.coverage >= 0.5 && c.sameness(d, part) >= c.leastSame(part)
	case b.role == User && d.recurs >= leastEnd && c.allFollows(d):
		return true
	}
	if b.role == User { // other words of a user are another conversation, unless nearly everything behind them is the same
		return d.recurs >= leastAgain && d.coverage >= 0.9 && c.similar(d.part)
	}
	return d.coverage >= 0.5 && c.similar(d.part)
}

// inFront reports whether a difference stands in front of all messages that are not of the system.
func (c *pair) inFront(d *difference) bool {
	part := min(d.part, len(c.b)-1)
	return part >= 0 && (c.b[part].turn == Front || c.b[part].role == System && !c.spoken(part))
}

// allFollows reports whether all that the earlier prompt has behind the message follows it in the later one, too.
func (c *pair) allFollows(d *difference) bool {
	turn := c.b[d.part].turn
	if d.part >= len(c.a) || c.a[d.part].turn != turn {
		return false
	}
	x, y := turnsOf(c.a, turn), turnsOf(c.b, turn)
	return len(x) > 1 && len(y) >= len(x) && slices.Equal(x[1:], y[1:len(x)])
}

// endCounts reports whether a difference in the last message is a loss. That message is new as a rule, also where it has documents of
// another one behind another question. Without a system text it is a template that was filled in.
func (c *pair) endCounts(d *difference, part int) bool {
	filledIn := c.filledIn(part)
	least, same := leastEnd, 0.9
	if d.certain && filledIn {
		least, same = leastSure, c.leastSame(part)
	}
	if d.recurs < least || d.coverage < 0.5 || c.sameness(d, part) < same {
		return false
	}
	return d.certain || filledIn && d.coverage >= 0.8
}

// filledIn reports whether a part is the first message and there is no system text: it has the instructions, and then the question.
func (c *pair) filledIn(part int) bool {
	return !c.spoken(part) && len(c.systemWords(c.b, false)) == 0
}

// leastSame is how much of a part must be the same behind a difference.
func (c *pair) leastSame(part int) float64 {
	if c.filledIn(part) {
		return 0.6 // the question is another one, too
	}
	return 0.9
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
	case Media, Ident:
		return all(c.restSame(part))
	case Name, Opaque:
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

// restSame reports whether the other parts of a message are the same, but for identifiers: another picture with another question, or
// another call with an identifier of its own, is another message.
func (c *pair) restSame(part int) bool {
	turn := c.b[part].turn
	rest := func(views []view) []uint64 {
		var hashes []uint64
		for i := range views {
			if v := &views[i]; v.turn == turn && v.kind != Ident && i != part {
				hashes = append(hashes, v.hash)
			}
		}
		return hashes
	}
	return slices.Equal(rest(c.a), rest(c.b))
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

// within reports whether all words of a text stand in another one, in a row (Knuth, Morris, Pratt).
func within(long, short []word) bool {
	const least = 3
	short = trimBlank(short)
	if len(short) < least || len(long) <= len(short) {
		return false
	}
	back := make([]int, len(short)) // how many words the text begins with, too, when it has matched up to here
	for i, j := 1, 0; i < len(short); i++ {
		for j > 0 && !short[i].same(short[j]) {
			j = back[j-1]
		}
		if short[i].same(short[j]) {
			j++
		}
		back[i] = j
	}
	j := 0
	for _, w := range long {
		for j > 0 && !w.same(short[j]) {
			j = back[j-1]
		}
		if w.same(short[j]) {
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
