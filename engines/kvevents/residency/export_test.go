package residency

import "fmt"

// Check reports whether the parts of the index agree.
func (x *Index) Check() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.touched)+len(x.taken)+len(x.marked) > 0 {
		return fmt.Errorf("left behind: %d touched, %d taken, %d marked", len(x.touched), len(x.taken), len(x.marked))
	}
	copies, ends, kids := map[ref]int32{}, map[ref]int32{root: int32(x.waiting)}, map[ref]int{}
	for h, e := range x.entries {
		if e.node == 0 {
			continue
		}
		n := x.tree.at(e.node)
		if n.parent == 0 {
			return fmt.Errorf("hash %v lies at a node that was freed", h)
		}
		if e.gpu == 0 && e.low == 0 && n.hash != h {
			return fmt.Errorf("hash %v without copies is kept", h)
		}
		copies[e.node] += e.gpu
	}
	listed, stored := 0, 0
	for c, r := range x.tree.known {
		n := x.tree.at(r)
		kids[n.parent]++
		if n.stored() {
			stored++
		}
		if n.chain != c || n.flags != 0 || n.copies != copies[r] {
			return fmt.Errorf("node %d: flags %b, %d copies, the hashes have %d", r, n.flags, n.copies, copies[r])
		}
		for s := n.list; s != 0; s = x.reqs.at(s).next {
			listed++
			q := x.reqs.at(s)
			first := x.tree.missing(q.end)
			if q.at != r || first != 0 && r != first || first == 0 && r != q.end {
				return fmt.Errorf("%s stands at %d, misses %d first, ends at %d", q.id, r, first, q.end)
			}
		}
	}
	for s := x.tree.at(root).list; s != 0; s = x.reqs.at(s).next {
		listed++
	}
	for id, s := range x.reqs.byID {
		q := x.reqs.at(s)
		if q.id != id {
			return fmt.Errorf("%s is called %s", id, q.id)
		}
		if q.waiting == nil {
			ends[q.end]++
			listed--
		}
	}
	if listed != 0 {
		return fmt.Errorf("%d more requests in lists than registered", listed)
	}
	for c, r := range x.tree.known {
		n := x.tree.at(r)
		if n.ends != ends[r] {
			return fmt.Errorf("%d requests end at node %d, want %d", n.ends, r, ends[r])
		}
		if n.copies == 0 && n.low == 0 && n.ends == 0 && kids[r] == 0 {
			return fmt.Errorf("node %d (%v) is of no use", r, c)
		}
	}
	if stored != x.tree.stored {
		return fmt.Errorf("%d nodes that the engine has, want %d", x.tree.stored, stored)
	}
	if x.tree.at(root).ends != ends[root] || x.tree.live != len(x.tree.known) {
		return fmt.Errorf("%d requests end at the root, want %d; %d nodes, want %d", x.tree.at(root).ends, ends[root], x.tree.live,
			len(x.tree.known))
	}
	return nil
}
