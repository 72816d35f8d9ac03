package residency

import "github.com/ragpilot/ragpilot/engines/kvevents"

// orphans are blocks that the engine holds, whose place is not known because the block before them is not: events
// were missed. They are entered when that block shows up, and forgotten when they are removed.
type orphans struct {
	blocks map[kvevents.Hash]orphan
	kids   map[kvevents.Hash]map[kvevents.Hash]struct{}
}

type orphan struct {
	parent  kvevents.Hash
	content []byte
}

func newOrphans() orphans {
	return orphans{blocks: make(map[kvevents.Hash]orphan), kids: make(map[kvevents.Hash]map[kvevents.Hash]struct{})}
}

func (o *orphans) add(h, parent kvevents.Hash, content []byte) {
	if _, ok := o.blocks[h]; ok {
		return
	}
	o.blocks[h] = orphan{parent, append([]byte(nil), content...)}
	if o.kids[parent] == nil {
		o.kids[parent] = make(map[kvevents.Hash]struct{})
	}
	o.kids[parent][h] = struct{}{}
}

func (o *orphans) remove(h kvevents.Hash) {
	b, ok := o.blocks[h]
	if !ok {
		return
	}
	delete(o.blocks, h)
	if kids := o.kids[b.parent]; len(kids) > 1 {
		delete(kids, h)
	} else {
		delete(o.kids, b.parent)
	}
}

func (o *orphans) reset() {
	clear(o.blocks)
	clear(o.kids)
}

// orphan keeps the block that was begun in x.chain.
func (x *Index) orphan(h, parent kvevents.Hash, tier tier) {
	if e, ok := x.entries[h]; ok && e.node != 0 { // a copy of a block that is known
		x.add(h, e.node, tier)
		return
	}
	x.stats.Orphans++
	x.add(h, 0, tier)
	if _, ok := x.entries[h]; !ok {
		return
	}
	if len(x.orphans.blocks) >= x.cfg.MaxOrphans {
		x.stats.Overflow++
		x.broken = true
		return
	}
	x.orphans.add(h, parent, x.chain.content())
}

// adopt enters the orphans behind h, which stands at n by now.
func (x *Index) adopt(h kvevents.Hash, n ref) {
	x.orphans.remove(h)
	type placed struct {
		hash kvevents.Hash
		node ref
	}
	for todo := []placed{{h, n}}; len(todo) > 0; {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		kids := x.orphans.kids[p.hash]
		delete(x.orphans.kids, p.hash)
		for k := range kids {
			o := x.orphans.blocks[k]
			x.orphans.remove(k)
			if at := x.grow(p.node, o.content); at != 0 {
				x.bind(k, at)
				todo = append(todo, placed{k, at})
			}
		}
	}
}

// bind enters the place of a block that was counted without one.
func (x *Index) bind(h kvevents.Hash, n ref) {
	e := x.entries[h]
	if e.node == n {
		return
	}
	if e.node != 0 { // the engine calls another block so: it cannot be both
		x.stats.Conflicts++
		x.broken = true
		x.change(e.node, -e.gpu, -e.low)
	}
	e.node = n
	x.entries[h] = e
	at := x.tree.at(n)
	if old, ok := x.entries[at.hash]; ok && at.hash != h && old.node == n && old.gpu == 0 && old.low == 0 {
		delete(x.entries, at.hash)
	}
	at.hash = h
	x.change(n, e.gpu, e.low)
}
