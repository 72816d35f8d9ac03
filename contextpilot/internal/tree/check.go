package tree

import (
	"fmt"
	"slices"
)

// Check verifies what must always hold and returns the first thing that does not. For tests.
func (t *Tree) Check() error {
	c := checker{t: t, ends: map[int32]Node{}}
	if err := c.walk(Root); err != nil {
		return err
	}
	if c.tokens != t.tokens || c.count != t.count {
		return fmt.Errorf("%d tokens in %d nodes, counted %d in %d", t.tokens, t.count, c.tokens, c.count)
	}
	if c.inTable != t.byKey.n {
		return fmt.Errorf("%d children in the table, counted %d", t.byKey.n, c.inTable)
	}
	if first := t.nodes.at(0); first.parent != none || *t.ends(Root) < 0 {
		return fmt.Errorf("a request or a parent (%d) of the root", first.parent)
	}
	if err := t.checkRequests(c.ends); err != nil {
		return err
	}
	return t.checkLRU()
}

// checker walks the tree and counts.
type checker struct {
	t                      *Tree
	tokens, count, inTable int
	ends                   map[int32]Node // of requests
}

func (c *checker) walk(n Node) error {
	t, x := c.t, c.t.node(n)
	for r, prev := -*t.ends(n), int32(0); r != 0; r, prev = t.reqs.at(r).next, r {
		c.ends[r] = n
		if y := t.reqs.at(r); y.end != n || y.prev != prev {
			return fmt.Errorf("request %q is listed at node %d but ends at %d", y.id, n, y.end)
		}
	}
	if n != Root && x.first == 0 {
		return fmt.Errorf("node %d is not used", n)
	}
	kids := t.Children(nil, n)
	if len(kids) != t.Fanout(n) {
		return fmt.Errorf("node %d has %d children, counted %d", n, t.Fanout(n), len(kids))
	}
	if marked := x.fan&inTable != 0; marked {
		c.inTable += len(kids)
		if len(kids) <= wide/2 {
			return fmt.Errorf("node %d has %d children in the table", n, len(kids))
		}
	} else if len(kids) > wide {
		return fmt.Errorf("node %d has %d children out of the table", n, len(kids))
	}
	for i, k := range kids {
		y := t.node(k)
		if y.parent != n || y.depth < x.depth {
			return fmt.Errorf("node %d: parent %d, depth %d below %d", k, y.parent, y.depth, x.depth)
		}
		if before := kids[(i+len(kids)-1)%len(kids)]; y.prev != int32(before) {
			return fmt.Errorf("node %d: behind %d, not %d", k, y.prev, before)
		}
		if got, ok := t.Child(n, y.key); !ok || got != k {
			return fmt.Errorf("node %d: key %x leads to %d", n, y.key, got)
		}
		if n != Root && y.fan&sure != 0 && x.fan&sure == 0 {
			return fmt.Errorf("node %d is sure below %d, which is not", k, n)
		}
		c.tokens, c.count = c.tokens+int(y.depth-x.depth), c.count+1
		if err := c.walk(k); err != nil {
			return err
		}
	}
	return nil
}

// checkRequests compares the requests by end with those by ID and by age.
func (t *Tree) checkRequests(ends map[int32]Node) error {
	older, count := int32(0), 0
	for r := t.oldest; r != 0; r = t.reqs.at(r).newer {
		x := t.reqs.at(r)
		if _, ok := ends[r]; !ok || t.find(x.id) != r || x.older != older {
			return fmt.Errorf("request %q (ends at %d) is not in the tree", x.id, x.end)
		}
		older = r
		count++
	}
	if older != t.newest || count != len(ends) || count != t.Len() {
		return fmt.Errorf("%d requests in the tree, %d by ID, %d by age", len(ends), t.Len(), count)
	}
	return nil
}

func (t *Tree) checkLRU() error {
	if t.capacity == 0 {
		return nil
	}
	if t.tokens > t.capacity {
		return fmt.Errorf("%d tokens in a capacity of %d", t.tokens, t.capacity)
	}
	age := map[Node]int{}
	for _, n := range slices.Backward(t.byAge()) {
		age[n] = len(age)
	}
	if len(age) != t.count {
		return fmt.Errorf("%d nodes in LRU order, %d live", len(age), t.count)
	}
	for n, a := range age {
		if p := t.node(n).parent; p != Root && age[p] > a {
			return fmt.Errorf("node %d is younger than its parent %d", n, p)
		}
	}
	return nil
}

// byAge lists the nodes, the least recently used first.
func (t *Tree) byAge() (nodes []Node) {
	for c := t.lru.at(0).newer; c != 0; c = t.lru.at(c).newer {
		nodes = append(nodes, Node(c))
	}
	return nodes
}
