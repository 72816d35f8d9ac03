package tree

import "iter"

// Latest goes through the live requests, the one that came last first, and yields their IDs and the nodes that they end
// at. The tree must not be changed meanwhile. O(1) a request.
func (t *Tree) Latest() iter.Seq2[string, Node] {
	return func(yield func(string, Node) bool) {
		for r := t.newest; r != 0; {
			x := t.reqs.at(r)
			if !yield(x.id, x.end) {
				return
			}
			r = x.older
		}
	}
}

// Parent returns the node in front of n; -1 in front of the [Root].
func (t *Tree) Parent(n Node) Node { return t.node(n).parent }
