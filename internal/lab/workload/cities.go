package workload

import (
	"cmp"
	"slices"
)

// The map of the geospatial workload. Cities stand on a grid with a distance of 100. The paper gives neither the
// grid's shape nor the distances; reach is chosen so that consecutive requests have its Jaccard similarity of 0.17.
const (
	cityDistance = 100
	cityColumns  = 5
	citySize     = 40 // points of interest lie up to this far from the city's middle, in each direction
	reach        = 56 // and so do those who ask
	nearRadius   = 150
	stayPercent  = 70
)

// byCity draws requests as the RAGCache++ paper describes for its geospatial workload (Section 4.7): with a
// probability of 70 percent a query is asked near the city of the one before it, else in any city; it retrieves the
// k blocks of the nearest points of interest, out of the cities within a radius.
type byCity struct {
	opt     *Options
	random  random
	at      []point // of each block
	request int
	city    int
}

type point struct{ x, y int }

func (p point) distance2(q point) int { return (p.x-q.x)*(p.x-q.x) + (p.y-q.y)*(p.y-q.y) }

func newByCity(opt *Options) *byCity {
	m := &byCity{opt: opt, random: newRandom(opt.Seed, forRequests, 0), city: -1}
	r := newRandom(opt.Seed, forMap, 0)
	for c := range opt.Topics {
		lo, hi := opt.topicBlocks(c)
		for range hi - lo {
			m.at = append(m.at, around(r, middle(c), citySize))
		}
	}
	return m
}

func middle(city int) point {
	return point{city % cityColumns * cityDistance, city / cityColumns * cityDistance}
}

func around(r random, p point, far int) point {
	return point{p.x + r.Below(2*far+1) - far, p.y + r.Below(2*far+1) - far}
}

func (m *byCity) draw() request {
	if near := m.random.Below(100) < stayPercent; m.city < 0 || !near {
		m.city = m.random.Below(m.opt.Topics)
	}
	from := around(m.random, middle(m.city), reach)
	type place struct {
		distance int
		block    int32
	}
	var in []place
	for c := range m.opt.Topics {
		if middle(c).distance2(middle(m.city)) > nearRadius*nearRadius {
			continue
		}
		lo, hi := m.opt.topicBlocks(c)
		for b := lo; b < hi; b++ {
			in = append(in, place{m.at[b].distance2(from), int32(b)})
		}
	}
	slices.SortStableFunc(in, func(a, b place) int { return cmp.Compare(a.distance, b.distance) })
	q := request{session: m.request, turn: 1, topic: m.city}
	for _, p := range in[:m.opt.K] {
		q.blocks = append(q.blocks, p.block)
	}
	m.request++
	return q
}
