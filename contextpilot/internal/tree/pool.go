package tree

// A page is 1,024 values, 32 kB of nodes: at most as much lies unused.
const (
	pageBits = 10
	pageSize = 1 << pageBits
	minPage  = 8 // the first page begins so small, for indexes of a few requests
)

// pool numbers values from 1 and keeps them in pages, so that growth neither copies nor leaves much unused. Value 0
// is always there. See [newPool].
type pool[T any] struct {
	pages [][]T
	n     int32 // numbers given out, 0 and free ones included
	free  []int32
}

func newPool[T any]() pool[T] {
	return pool[T]{pages: [][]T{make([]T, minPage)}, n: 1}
}

// at returns value i; the pointer is good until the next take.
func (p *pool[T]) at(i int32) *T { return &p.pages[i>>pageBits][i&(pageSize-1)] }

// take returns the number of a zero value, the last one that was given back if there is one.
func (p *pool[T]) take() int32 {
	if k := len(p.free); k > 0 {
		i := p.free[k-1]
		p.free = p.free[:k-1]
		return i
	}
	i := p.n
	p.n++
	p.reach(i)
	return i
}

// give takes number i back and clears its value.
func (p *pool[T]) give(i int32) {
	var zero T
	*p.at(i) = zero
	p.free = append(p.free, i)
}

// reach adds pages until value i exists.
func (p *pool[T]) reach(i int32) {
	for first := p.pages[0]; len(first) < pageSize && int(i) >= len(first); first = p.pages[0] {
		p.pages[0] = make([]T, 2*len(first))
		copy(p.pages[0], first)
	}
	for int(i>>pageBits) >= len(p.pages) {
		p.pages = append(p.pages, make([]T, pageSize))
	}
}
