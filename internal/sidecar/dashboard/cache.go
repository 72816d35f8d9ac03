package picture

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// Picture is what a scope's index holds, and its largest parts. It is a copy.
type Picture struct {
	Live     int // requests
	Tokens   int // in the index
	Capacity int // of the engine's cache, in tokens, as Config.Capacity has it; 0: not known

	// Seen is the number of requests, the ones that came last, that Parts are counted over, and Blocks that of the nodes on
	// their paths. What is a request's own (notes, question, answer) is not among them.
	Seen, Blocks int
	// Parts are nodes with the most tokens × requests among those behind a node that is in Parts, too. Each comes behind its
	// parent and all of what is behind an earlier sibling; of siblings, the one with the most requests comes first.
	Parts []Part
}

// Part is a block behind a certain prefix.
type Part struct {
	Key      contextpilot.Key
	Parent   int // index in Parts; -1: it is what prompts begin with
	Tokens   int // of the block
	End      int // tokens from where prompts begin to its end
	Requests int // of those seen, that begin so
}

// Bounds of a picture.
const (
	maxParts = 1024
	// maxSteps bounds what is copied under the scope's lock: 16,384 blocks of the latest requests' paths take about a
	// millisecond.
	maxSteps = 1 << 14
)

// Of returns what a scope's index holds, with at most n parts (and no more than 1,024). ok is false if the scope has
// no index. It changes nothing. With n = 0 the scope's lock is held for a moment; otherwise while at most 16,384 blocks are
// copied, and what is left takes O(n log n) without it.
func Of(p *contextpilot.Pilot, scope contextpilot.Scope, n int) (pic Picture, ok bool) {
	var steps []step
	if n > 0 {
		steps = make([]step, 0, maxSteps)
	}
	ok = p.View(scope, func(v contextpilot.View) {
		pic.Live, pic.Tokens = v.Size()
		pic.Capacity = v.Capacity()
		if n > 0 {
			steps, pic.Seen = latest(v, steps)
		}
	})
	if !ok {
		return Picture{}, false
	}
	g := gather(steps)
	pic.Blocks = len(g.places) - 1
	pic.Parts = g.largest(min(n, maxParts))
	return pic, true
}

// step is one block of a request's path.
type step struct {
	node, parent contextpilot.Node
	key          contextpilot.Key
	from, to     int32 // tokens
}

// latest copies the paths of the requests that came last, from their ends, as many as fit in whole.
func latest(v contextpilot.View, steps []step) (paths []step, seen int) {
	for n := range v.Latest() {
		began := len(steps)
		for n != contextpilot.Root {
			if len(steps) == cap(steps) {
				return steps[:began], seen
			}
			parent := v.Parent(n)
			steps = append(steps, step{n, parent, v.Key(n), int32(v.Tokens(parent)), int32(v.Tokens(n))})
			n = parent
		}
		seen++
	}
	return steps, seen
}

// gathered are the nodes of paths.
type gathered struct {
	places []place // the first one stands for the root
	byNode map[contextpilot.Node]int32
}

// place is a node with its children as a list; 0 ends it.
type place struct {
	step
	requests    int
	first, next int32
}

func gather(steps []step) gathered {
	g := gathered{places: make([]place, 1, len(steps)+1), byNode: make(map[contextpilot.Node]int32, len(steps))}
	g.byNode[contextpilot.Root] = 0
	for _, s := range steps {
		at, ok := g.byNode[s.node]
		if !ok {
			at = int32(len(g.places))
			g.byNode[s.node] = at
			g.places = append(g.places, place{step: s})
		}
		g.places[at].requests++
	}
	for i := range g.places[1:] {
		p := &g.places[i+1]
		parent := &g.places[g.byNode[p.parent]]
		p.next, parent.first = parent.first, int32(i+1)
	}
	return g
}

// largest chooses at most n nodes, from the root on, and puts them in order.
func (g *gathered) largest(n int) []Part {
	if n <= 0 || len(g.places) == 1 {
		return nil
	}
	chosen := map[int32][]int32{} // by parent
	next := front{of: g.places}
	push := func(parent int32) {
		for c := g.places[parent].first; c != 0; c = g.places[c].next {
			heap.Push(&next, c)
		}
	}
	push(0)
	count := 0
	for ; len(next.list) > 0 && count < n; count++ {
		at := heap.Pop(&next).(int32)
		parent := g.byNode[g.places[at].parent]
		chosen[parent] = append(chosen[parent], at)
		push(at)
	}
	parts := make([]Part, 0, count)
	var put func(of int32, parent int)
	put = func(of int32, parent int) {
		list := chosen[of]
		slices.SortFunc(list, func(a, b int32) int {
			return cmp.Or(g.places[b].requests-g.places[a].requests, cmp.Compare(g.places[a].key, g.places[b].key))
		})
		for _, c := range list {
			p := &g.places[c]
			parts = append(parts, Part{
				Key: p.key, Parent: parent, Tokens: int(p.to - p.from), End: int(p.to), Requests: p.requests,
			})
			put(c, len(parts)-1)
		}
	}
	put(0, -1)
	return parts
}

// front is a heap of places, the largest on top.
type front struct {
	of   []place
	list []int32
}

func (f *front) Len() int { return len(f.list) }

func (f *front) Less(i, j int) bool {
	a, b := &f.of[f.list[i]], &f.of[f.list[j]]
	x, y := int(a.to-a.from)*a.requests, int(b.to-b.from)*b.requests
	return cmp.Or(y-x, cmp.Compare(a.key, b.key), cmp.Compare(a.node, b.node)) < 0
}

func (f *front) Swap(i, j int) { f.list[i], f.list[j] = f.list[j], f.list[i] }

// Push is for package heap.
func (f *front) Push(x any) { f.list = append(f.list, x.(int32)) }

// Pop is for package heap.
func (f *front) Pop() any {
	last := len(f.list) - 1
	p := f.list[last]
	f.list = f.list[:last]
	return p
}
