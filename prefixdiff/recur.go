package prefixdiff

import "slices"

// shingle is the number of words in a row by which texts are compared.
const shingle = 6

// visible leaves out white space.
func visible(words []word) []word {
	out := make([]word, 0, len(words))
	for _, w := range words {
		if w.class() != blank {
			out = append(out, w)
		}
	}
	return out
}

// shingles adds the hashes of all runs of words. White space does not count.
func shingles(set map[uint64]struct{}, words []word) {
	words = visible(words)
	for i := 0; i+shingle <= len(words); i++ {
		set[runOf(words[i:i+shingle])] = struct{}{}
	}
}

func runOf(words []word) uint64 {
	var h uint64
	for _, w := range words {
		h = mix(h, uint64(w&^spaceBit))
	}
	return h
}

// covered returns the share of the words that stand in a run of the set, and the share behind which there is no such run.
func covered(set map[uint64]struct{}, words []word) (share, last float64) {
	words = visible(words)
	if len(words) == 0 {
		return 0, 0
	}
	n, end := 0, 0
	for i := 0; i+shingle <= len(words); i++ {
		if _, ok := set[runOf(words[i:i+shingle])]; ok {
			from := max(i, end)
			end = i + shingle
			n += end - from
		}
	}
	return float64(n) / float64(len(words)), float64(end) / float64(len(words))
}

// longText is the length in bytes from which texts are compared by chunks and not by words, as that takes less time.
const longText = 128 << 10

// later is what the earlier prompt has behind a difference, in parts that are not equal to one of the later prompt.
type later struct {
	runs   map[uint64]struct{} // of the words of short parts
	chunks map[uint64]struct{}
}

// open collects what the unequal parts of the earlier prompt have. Rest counts their hashes.
func (c *pair) open(d *difference, rest map[uint64]int) later {
	l := later{map[uint64]struct{}{}, map[uint64]struct{}{}}
	for i := d.part; i < len(c.a); i++ {
		v := &c.a[i]
		if rest[v.hash] == 0 {
			continue
		}
		rest[v.hash]--
		size := int(v.size)
		if i == d.part {
			size -= d.at
		}
		if size <= longText {
			c.describeA(i)
			words := v.words
			if i == d.part && i < len(c.b) && c.b[i].words != nil {
				words = words[sameWords(words, c.b[i].words):]
			}
			shingles(l.runs, words)
		}
		for _, p := range c.piecesA(i) {
			l.chunks[p.hash] = struct{}{}
		}
	}
	return l
}

// piecesA returns the chunks of part i of the earlier prompt.
func (c *pair) piecesA(i int) []piece {
	v := &c.a[i]
	if v.chunks == nil && c.text != nil {
		v.chunks = c.pieces(&Part{Kind: v.kind, Role: v.role, Text: c.text(i)}, nil)
	}
	return v.chunks
}

// of returns how much of part j of the later prompt the earlier one has, as a share, and the share behind which there is no more of it.
func (l *later) of(c *pair, d *difference, j int) (share, end float64) {
	part := &c.p.Parts[j]
	from := 0
	if j == d.part {
		if from = d.at; d.blank {
			return 1, 1
		}
	}
	if len(part.Text)-from > longText || len(l.runs) == 0 {
		n, last, at := 0, 0, 0
		for _, p := range c.pieces(part, nil) {
			at += int(p.bytes)
			if at-int(p.bytes) < from {
				continue
			}
			if _, ok := l.chunks[p.hash]; ok {
				n, last = n+int(p.bytes), at-from
			}
		}
		all := float64(max(len(part.Text)-from, 1))
		return float64(n) / all, float64(last) / all
	}
	c.splitter.describe(&c.b[j], part)
	words := c.b[j].words
	if j == d.part && j < len(c.a) && c.a[j].words != nil {
		words = words[sameWords(words, c.a[j].words):]
	}
	if len(words) < shingle {
		return 0, 0
	}
	return covered(l.runs, words)
}

// recurring counts what the prompts have in common behind the difference: it would have been reused without that.
func (c *pair) recurring(d *difference) {
	rest := map[uint64]int{}
	for i := d.part; i < len(c.a); i++ {
		rest[c.a[i].hash]++
	}
	var open []int // parts of the later prompt that the earlier one has not
	for j := d.part; j < len(c.b); j++ {
		if h := c.b[j].hash; rest[h] > 0 {
			rest[h]--
		} else {
			open = append(open, j)
		}
	}
	var l later
	if len(open) > 0 {
		l = c.open(d, rest)
	}
	at, last := 0, 0
	if d.cause == Image && d.part < len(c.b) && c.b[d.part].kind == Media && c.b[d.part].turn < c.tail() {
		d.recurs, last = mediaTokens, mediaTokens // the picture is the same to the user
	}
	for j := d.part; j < len(c.b); j++ {
		n := c.tokens(j)
		if j == d.part && d.at > 0 {
			n -= whole(c.p.Parts[j].Text, d.at)
		}
		if len(open) == 0 || open[0] != j {
			d.recurs += n
			at += n
			last = max(last, at)
			continue
		}
		open = open[1:]
		if n >= shingle && c.b[j].kind != Media {
			if share, end := l.of(c, d, j); share > 0 {
				d.recurs += int(share * float64(n))
				last = max(last, at+int(end*float64(n)))
			}
		}
		at += n
	}
	all := 0
	for i := d.part; i < len(c.a); i++ {
		all += int(c.a[i].size)
		if c.a[i].kind == Media {
			all += mediaTokens
		}
	}
	d.recurs = min(d.recurs, all) // a text may come back more often than it was there
	if last > 0 {
		d.coverage = float64(d.recurs) / float64(last)
	}
}

// similar reports whether the parts that differ are two versions of one text.
func (c *pair) similar(i int) bool {
	if i >= len(c.a) || i >= len(c.b) {
		return false
	}
	c.describe(i)
	x, y := c.a[i].words, c.b[i].words
	return share(x, y) >= 0.5 || share(y, x) >= 0.5
}

// share is the part of the words of y that stand in runs of x.
func share(x, y []word) float64 {
	set := map[uint64]struct{}{}
	shingles(set, x)
	part, _ := covered(set, y)
	return part
}

// turnsOf returns a hash for each turn from one on.
func turnsOf(views []view, from int32) []uint64 {
	var turns []uint64
	last := from - 1
	for i := range views {
		v := &views[i]
		if v.turn < from {
			continue
		}
		if v.turn != last {
			turns, last = append(turns, 0), v.turn
		}
		t := &turns[len(turns)-1]
		*t = mix(*t, mix(v.hash, uint64(v.kind)<<8|uint64(v.role)))
	}
	return turns
}

// moved reports whether the message at the difference is another message of the other prompt: one was left out or put in.
func (c *pair) moved(d *difference) bool {
	a, b := &c.a[d.part], &c.b[d.part]
	turn := min(a.turn, b.turn)
	if turn < 0 || a.role == System && b.role == System {
		return false
	}
	x, y := turnsOf(c.a, turn), turnsOf(c.b, turn)
	return len(x) > 0 && len(y) > 0 && x[0] != y[0] && (slices.Contains(y[1:], x[0]) || slices.Contains(x[1:], y[0]))
}

// goesOn reports whether the later prompt has the last message of the user in the earlier one behind the difference: it is the same
// conversation. Where a user's message differs, another one's answers are no sign of that.
func (c *pair) goesOn(d *difference) bool {
	if d.part >= len(c.a) || d.part >= len(c.b) {
		return false
	}
	last := c.a[len(c.a)-1].turn
	if c.b[d.part].role == User && !d.moved {
		for i := len(c.a) - 1; i >= 0 && c.a[i].role != User; i-- {
			last = c.a[max(i-1, 0)].turn
		}
	}
	from := max(c.a[d.part].turn, 0)
	x := turnsOf(c.a, from)
	if last < from || len(x) == 0 {
		return false
	}
	i := len(x) - 1 - int(c.a[len(c.a)-1].turn-last)
	return i >= 0 && slices.Contains(turnsOf(c.b, max(c.b[d.part].turn, 0)), x[i])
}

// swapped reports whether two parts of one message have changed places.
func (c *pair) swapped(d *difference) bool {
	a, b := &c.a[d.part], &c.b[d.part]
	later := func(views []view, v *view) bool {
		for i := d.part + 1; i < len(views) && views[i].turn == v.turn; i++ {
			if views[i].hash == v.hash && views[i].kind == v.kind {
				return true
			}
		}
		return false
	}
	return a.turn == b.turn && a.role == b.role && a.kind != Ident && a.kind != Name && later(c.a, b) && later(c.b, a)
}
