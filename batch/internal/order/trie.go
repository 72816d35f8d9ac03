package order

// trie holds the prompts of rows, byte for byte. An inner node stands for a piece of one unit's text, and a leaf for the rest of one row's
// prompt, which no other row shares. The cost is the number of bytes in all nodes: what an engine must compute with an unlimited cache.
type trie struct {
	text  [][]byte  // by unit
	order [][]int32 // by row: its units in prompt order; a row must be taken out before its order is changed
	nodes []node
	free  []int32
	leaf  []int32 // by row: its leaf, or none
	wide  [][256]int32
	spare []int32 // unused tables of wide
	cost  int64
	steps int // work done
}

type node struct {
	up, kid, next, prev int32
	unit                int32 // inner: whose text it is a piece of; leaf: none
	row, pos            int32 // leaf: the row, and the position in its order where the rest begins
	off                 int32 // where in the unit's text it begins
	len                 int32 // bytes
	kids                int32
	table               int32 // of the children by first byte, or none
	first               byte
}

const (
	none     = int32(-1)
	wideKids = 8
)

func newTrie(text [][]byte, order [][]int32) *trie {
	t := &trie{text: text, order: order, leaf: make([]int32, len(order)), nodes: make([]node, 0, 2*len(order)+8)}
	t.nodes = append(t.nodes, node{up: none, kid: none, next: none, prev: none, unit: none, table: none})
	for r := range t.leaf {
		t.leaf[r] = none
	}
	return t
}

func (t *trie) alloc(n node) int32 {
	n.kid, n.next, n.prev, n.up, n.table, n.kids = none, none, none, none, none, 0
	t.cost += int64(n.len)
	if k := len(t.free); k > 0 {
		v := t.free[k-1]
		t.free = t.free[:k-1]
		t.nodes[v] = n
		return v
	}
	t.nodes = append(t.nodes, n)
	return int32(len(t.nodes) - 1)
}

func (t *trie) release(v int32) {
	t.cost -= int64(t.nodes[v].len)
	if w := t.nodes[v].table; w != none {
		t.spare = append(t.spare, w)
	}
	t.free = append(t.free, v)
}

// link makes v a child of p.
func (t *trie) link(v, p int32) {
	x, y := &t.nodes[v], &t.nodes[p]
	if x.len > 0 {
		x.first = t.firstByte(x)
	}
	x.up, x.prev, x.next = p, none, y.kid
	if y.kid != none {
		t.nodes[y.kid].prev = v
	}
	y.kid = v
	y.kids++
	switch {
	case y.table != none:
		if x.len > 0 {
			t.wide[y.table][x.first] = v
		}
	case y.kids > wideKids:
		t.widen(p)
	}
}

func (t *trie) widen(p int32) {
	y := &t.nodes[p]
	if k := len(t.spare); k > 0 {
		y.table = t.spare[k-1]
		t.spare = t.spare[:k-1]
	} else {
		y.table = int32(len(t.wide))
		t.wide = append(t.wide, [256]int32{})
	}
	table := &t.wide[y.table]
	for i := range table {
		table[i] = none
	}
	for c := y.kid; c != none; c = t.nodes[c].next {
		if t.nodes[c].len > 0 {
			table[t.nodes[c].first] = c
		}
	}
}

func (t *trie) firstByte(x *node) byte {
	if x.unit != none {
		return t.text[x.unit][x.off]
	}
	order, off := t.order[x.row][x.pos:], x.off
	for int(off) == len(t.text[order[0]]) {
		order, off = order[1:], 0
	}
	return t.text[order[0]][off]
}

func (t *trie) unlink(v int32) {
	x := &t.nodes[v]
	p := &t.nodes[x.up]
	if x.prev == none {
		p.kid = x.next
	} else {
		t.nodes[x.prev].next = x.next
	}
	if x.next != none {
		t.nodes[x.next].prev = x.prev
	}
	p.kids--
	if p.table != none && x.len > 0 {
		t.wide[p.table][x.first] = none
	}
}

// child returns the child of v that begins with b.
func (t *trie) child(v int32, b byte) int32 {
	x := &t.nodes[v]
	if x.table != none {
		return t.wide[x.table][b]
	}
	for c := x.kid; c != none; c = t.nodes[c].next {
		if t.nodes[c].first == b && t.nodes[c].len > 0 {
			return c
		}
	}
	return none
}

// spot is a place in the trie: at bytes into node v. pos and off are the same place in the order of v's row, if v is a leaf.
type spot struct{ v, at, pos, off int32 }

var top = spot{}

// follow walks from s along text, and returns how many bytes are there and where they end.
func (t *trie) follow(s spot, unit int32) (int32, spot) {
	text := t.text[unit]
	n := int32(0)
	for int(n) < len(text) {
		x := &t.nodes[s.v]
		if s.at == x.len {
			t.steps++
			c := t.child(s.v, text[n])
			if c == none {
				return n, s
			}
			x = &t.nodes[c]
			s = spot{v: c, pos: x.pos, off: x.off}
		}
		t.steps++
		if x.unit != none {
			var k int32
			if x.unit == unit && x.off+s.at == n {
				k = min(x.len-s.at, int32(len(text))-n)
			} else {
				k = int32(common(t.text[x.unit][x.off+s.at:x.off+x.len], text[n:]))
			}
			n += k
			s.at += k
			if s.at < x.len {
				return n, s
			}
			continue
		}
		own := t.order[x.row][s.pos]
		if int(s.off) == len(t.text[own]) {
			s.pos, s.off = s.pos+1, 0
			continue
		}
		k := int32(len(text)) - n
		if own != unit || s.off != n {
			k = int32(common(t.text[own][s.off:], text[n:]))
		}
		n += k
		s.at += k
		s.off += k
		if int(s.off) < len(t.text[own]) {
			return n, s
		}
	}
	return n, s
}

// insert puts in a row.
func (t *trie) insert(row int32) {
	order := t.order[row]
	s := top
	i, n := 0, int32(0)
	for ; i < len(order); i++ {
		n, s = t.follow(s, order[i])
		if int(n) < len(t.text[order[i]]) {
			break
		}
	}
	rest := int32(0)
	if i < len(order) {
		rest = int32(len(t.text[order[i]])) - n
		for _, u := range order[i+1:] {
			rest += int32(len(t.text[u]))
		}
	} else {
		n = 0
	}
	p := t.split(s)
	v := t.alloc(node{unit: none, row: row, pos: int32(i), off: n, len: rest})
	t.link(v, p)
	t.leaf[row] = v
}

// split makes a node end at s and returns it.
func (t *trie) split(s spot) int32 {
	x := t.nodes[s.v]
	if x.unit == none && s.v != 0 {
		return t.splitLeaf(s)
	}
	if s.at == x.len {
		return s.v
	}
	t.unlink(s.v)
	m := t.alloc(node{unit: x.unit, off: x.off, len: s.at})
	t.link(m, x.up)
	t.cost -= int64(s.at)
	y := &t.nodes[s.v]
	y.off += s.at
	y.len -= s.at
	t.link(s.v, m)
	return m
}

// splitLeaf makes nodes of the beginning of a leaf.
func (t *trie) splitLeaf(s spot) int32 {
	x := t.nodes[s.v]
	p := x.up
	t.unlink(s.v)
	order := t.order[x.row]
	for left := s.at; left > 0; x.pos, x.off = x.pos+1, 0 {
		u := order[x.pos]
		k := min(int32(len(t.text[u]))-x.off, left)
		if k == 0 {
			continue
		}
		m := t.alloc(node{unit: u, off: x.off, len: k})
		t.link(m, p)
		p = m
		left -= k
	}
	t.cost -= int64(s.at)
	y := &t.nodes[s.v]
	y.pos, y.off = s.pos, s.off
	y.len -= s.at
	t.link(s.v, p)
	return p
}

// remove takes a row out.
func (t *trie) remove(row int32) {
	v := t.leaf[row]
	t.leaf[row] = none
	for {
		p := t.nodes[v].up
		t.unlink(v)
		t.release(v)
		if p == 0 || t.nodes[p].kids > 0 {
			v = p
			break
		}
		v = p
	}
	for v != 0 && t.nodes[v].kids == 1 {
		c := t.nodes[v].kid
		if t.nodes[c].unit != none {
			return
		}
		v = t.absorb(v, c)
	}
}

// absorb makes v a part of its only child, a leaf, and returns the parent.
func (t *trie) absorb(v, c int32) int32 {
	p := t.nodes[v].up
	t.unlink(c)
	t.unlink(v)
	n := t.nodes[v].len
	t.release(v)
	x := &t.nodes[c]
	x.len += n
	t.cost += int64(n)
	for x.off -= n; x.off < 0; {
		x.pos--
		x.off += int32(len(t.text[t.order[x.row][x.pos]]))
	}
	t.link(c, p)
	return p
}

// depth is the number of bytes above a node.
func (t *trie) depth(v int32) int32 {
	n := int32(0)
	for v = t.nodes[v].up; v > 0; v = t.nodes[v].up {
		n += t.nodes[v].len
	}
	return n
}
