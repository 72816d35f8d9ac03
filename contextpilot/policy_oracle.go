package contextpilot

// oracle tries all orders and takes the one with the longest resident prefix; the rest follows as retrieved. It is what
// other policies' paths are compared with, and does not think of later requests. An order is followed as long as it
// is resident, so that the time is O(k × nodes of the index that are made of the request's blocks only), which has no
// useful bound: for short requests and small indexes.
type oracle struct {
	order, best []int
	tokens      int
}

func (*oracle) Name() string { return "oracle" }

func (o *oracle) Order(dst []int, q Query) []int {
	o.order = identity(o.order[:0], len(q.Blocks))
	o.best, o.tokens = append(o.best[:0], o.order...), 0
	if q.From != NoNode {
		o.try(q, q.From, 0)
	}
	return append(dst, o.best...)
}

// try goes on behind n, where the first depth blocks of the order have led.
func (o *oracle) try(q Query, n Node, depth int) {
	if t := q.Tree.Tokens(n) - q.Tree.Tokens(q.From); t > o.tokens {
		o.best, o.tokens = append(o.best[:0], o.order...), t
	}
	rest := o.order[depth:]
	for i, j := range rest {
		if c, ok := q.Tree.Child(n, q.Blocks[j].Key); ok {
			copy(rest[1:i+1], rest[:i]) // the others keep their order
			rest[0] = j
			o.try(q, c, depth+1)
			copy(rest[:i], rest[1:i+1])
			rest[i] = j
		}
	}
}
