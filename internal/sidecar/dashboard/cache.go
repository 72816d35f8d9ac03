package dashboard

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// maxSteps bounds what is copied under the scope's lock: 16,384 blocks of the latest requests' paths take about a millisecond.
const maxSteps = 1 << 14

// PictureOf returns what a scope of a pilot's index holds, with at most n parts. ok is false if the scope has no index. It
// changes nothing. With n = 0 the scope's lock is held for a moment; otherwise while at most 16,384 blocks are copied, and what
// is left takes O(n · blocks) without it.
func PictureOf(p *contextpilot.Pilot, scope contextpilot.Scope, n int) (pic Picture, ok bool) {
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
	pic.Blocks, pic.Parts = len(g.places)-1, g.largest(n)
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

// largest chooses at most n nodes, from the root on: always the one with the most tokens × requests among those behind a node that
// was chosen. It puts them in order.
func (g *gathered) largest(n int) []Part {
	chosen := map[int32][]int32{} // by parent
	var next []int32              // the children of the root and of what is chosen
	add := func(parent int32) {
		for c := g.places[parent].first; c != 0; c = g.places[c].next {
			next = append(next, c)
		}
	}
	add(0)
	count := 0
	for ; len(next) > 0 && count < n; count++ {
		best := 0
		for i := range next {
			if g.larger(next[i], next[best]) {
				best = i
			}
		}
		at := next[best]
		next[best] = next[len(next)-1]
		next = next[:len(next)-1]
		parent := g.byNode[g.places[at].parent]
		chosen[parent] = append(chosen[parent], at)
		add(at)
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
				Name: fmt.Sprintf("%016x", uint64(p.key)), Parent: parent, Tokens: int(p.to - p.from), End: int(p.to), Requests: p.requests,
			})
			put(c, len(parts)-1)
		}
	}
	put(0, -1)
	return parts
}

func (g *gathered) larger(a, b int32) bool {
	x, y := &g.places[a], &g.places[b]
	size := func(p *place) int { return int(p.to-p.from) * p.requests }
	return cmp.Or(size(y)-size(x), cmp.Compare(x.key, y.key), cmp.Compare(x.node, y.node)) < 0
}
