package tree

import "fmt"

// Check verifies what must always hold and returns the first thing that does not. For tests.
func (t *Tree) Check() error {
	tokens, count := 0, 0
	ends := map[int32]Node{}
	var walk func(n Node) error
	walk = func(n Node) error {
		x := &t.nodes[n]
		for r := x.reqs; r != none; r = t.reqs[r].next {
			ends[r] = n
			if t.reqs[r].end != n {
				return fmt.Errorf("request %q is listed at node %d but ends at %d", t.reqs[r].id, n, t.reqs[r].end)
			}
		}
		if n != Root {
			tokens, count = tokens+int(x.tokens), count+1
			if x.reqs == none && len(x.kids) == 0 {
				return fmt.Errorf("node %d is used by nobody", n)
			}
		}
		for _, k := range x.kids {
			c := &t.nodes[k]
			if c.parent != n || c.depth != x.depth+c.tokens {
				return fmt.Errorf("node %d: parent %d, depth %d below %d", k, c.parent, c.depth, x.depth)
			}
			if got, ok := t.Child(n, c.key); !ok || got != k {
				return fmt.Errorf("node %d: key %x leads to %d", n, c.key, got)
			}
			if err := walk(k); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(Root); err != nil {
		return err
	}
	if tokens != t.tokens || count != t.count {
		return fmt.Errorf("%d tokens in %d nodes, counted %d in %d", t.tokens, t.count, tokens, count)
	}
	if t.nodes[Root].reqs != none {
		return fmt.Errorf("request %q ends at the root", t.reqs[t.nodes[Root].reqs].id)
	}
	for id, r := range t.byID {
		if n, ok := ends[r]; !ok || t.reqs[r].id != id {
			return fmt.Errorf("request %q (ends at %d) is not in the tree", id, n)
		}
	}
	if len(ends) != len(t.byID) {
		return fmt.Errorf("%d requests in the tree, %d by ID", len(ends), len(t.byID))
	}
	return t.checkLRU()
}

func (t *Tree) checkLRU() error {
	if t.capacity == 0 {
		return nil
	}
	if t.tokens > t.capacity {
		return fmt.Errorf("%d tokens in a capacity of %d", t.tokens, t.capacity)
	}
	age := map[Node]int{}
	for n := t.first; n != none; n = t.nodes[n].next {
		age[n] = len(age)
	}
	if len(age) != t.count {
		return fmt.Errorf("%d nodes in LRU order, %d live", len(age), t.count)
	}
	for n, a := range age {
		if p := t.nodes[n].parent; p != Root && age[p] > a {
			return fmt.Errorf("node %d is younger than its parent %d", n, p)
		}
	}
	return nil
}
