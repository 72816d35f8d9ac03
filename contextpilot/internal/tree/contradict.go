package tree

// Contradict applies an engine's answer: of the request's path, at most the first tokens were resident when the
// engine began with it. If more of it was sure when the request was inserted, the answer contradicts the index. What the
// request found missing it has computed itself, so its own path stays; but an engine that drops the least recently used
// leaf first held nothing behind what was missing. So the requests that had been answered before this one was inserted and
// pass through a node of its path that ends behind tokens end where they leave the path; cut is their number.
//
// Sure is what an answered request has passed through: what is in flight may only not have been computed in time, and
// requests that were answered after this one was inserted may have been computed after it. Neither is touched.
//
// To be called before [Tree.Serve], which makes the path sure; no contradiction is found by a request that was served, or
// is not live. O(h), or O(nodes behind the path) for a contradiction.
func (t *Tree) Contradict(id string, tokens int) (contradicted bool, cut int) {
	if r := t.find(id); r != 0 {
		if x := t.reqs.at(r); x.state&served == 0 && int(x.sure) > tokens {
			contradicted, cut = true, t.contradict(r, tokens)
		}
	}
	t.shadow.contradict(t, id, tokens, contradicted, cut)
	return contradicted, cut
}

func (t *Tree) contradict(r int32, tokens int) (cut int) {
	since := t.reqs.at(r).since
	var side []Node
	for n, own := t.reqs.at(r).end, none; n != Root && t.Depth(n) > tokens; n, own = t.node(n).parent, n {
		side = side[:0]
		for c := t.node(n).first; c > 0; c = t.nodes.at(c).next {
			if Node(c) != own {
				side = append(side, Node(c))
			}
		}
		cut += t.recall(side, n, since)
	}
	return cut
}

// recall makes the requests that end in or behind the nodes side and were answered before since end at their parent.
// What stays is sure only where another answered request passes through it.
func (t *Tree) recall(side []Node, parent Node, since uint32) (cut int) {
	var gone, stay []int32
	for i := 0; i < len(side); i++ { // grows: whole subtrees
		n := side[i]
		t.node(n).fan &^= sure
		for r := -*t.ends(n); r != 0; r = t.reqs.at(r).next {
			switch x := t.reqs.at(r); {
			case x.state&served == 0:
			case before(x.since, since):
				gone = append(gone, r)
			default:
				stay = append(stay, r)
			}
		}
		side = t.Children(side, n)
	}
	for _, r := range stay {
		t.assure(t.reqs.at(r).end)
	}
	for _, r := range gone {
		end := t.reqs.at(r).end
		t.end(r, parent)
		t.prune(end, parent)
	}
	return len(gone)
}

// assure makes n and all above it sure.
func (t *Tree) assure(n Node) {
	for n != Root {
		x := t.node(n)
		if x.fan&sure != 0 {
			return
		}
		x.fan |= sure
		n = x.parent
	}
}

// certain returns how many tokens of a path are sure of which n is the last node there in full, and part the one behind
// it that is there in part, or none.
func (t *Tree) certain(n, part Node) int32 {
	if part != none {
		n = part
	}
	for n != Root && t.node(n).fan&sure == 0 {
		n = t.node(n).parent
	}
	return t.node(n).depth
}

// before reports whether clock a was earlier than b; they are less than half of the clock's range apart.
func before(a, b uint32) bool {
	d := (b - a) & clockMask
	return 0 < d && d <= clockMask/2
}
