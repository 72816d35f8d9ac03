package workload

import "slices"

// byRegion draws requests as the RAGCache++ paper's generator does (Sections 4.1 and 4.4): runs of Bursts queries of one
// region, each of which has the first max(1, floor(k x overlap)) blocks of the query before it, in front and in their
// order, and other blocks of the region behind them.
//
// The paper does not say how the others are drawn nor where the shared ones stand. Drawing the others evenly from
// all of the region's blocks gives the Jaccard similarities of its Table 12 (0.36, 0.36, 0.42, 0.52, 0.65 expected,
// 0.39, 0.39, 0.42, 0.53, 0.66 reported), and only shared blocks in front explain that its times in retrieval order fall
// by one block's time for each of them.
type byRegion struct {
	opt      *Options
	random   random
	disjoint bool // no run, and never the same region twice in a row
	request  int
	region   int
	last     []int32
}

func newByRegion(opt *Options, disjoint bool) *byRegion {
	return &byRegion{opt: opt, random: newRandom(opt.Seed, forRequests, 0), disjoint: disjoint, region: -1}
}

func (m *byRegion) draw() request {
	switch {
	case m.disjoint && m.region >= 0:
		m.region = (m.region + 1 + m.random.Below(m.opt.Topics-1)) % m.opt.Topics
		m.last = nil
	case m.request%max(1, m.opt.Bursts) == 0:
		m.region = m.random.Below(m.opt.Topics)
		m.last = nil
	}
	lo, hi := m.opt.topicBlocks(m.region)
	var blocks []int32
	if m.last != nil {
		k := uint64(m.opt.K)
		shared := max(1, int((fixed(*m.opt.Overlap)*k+k)>>32)) // + k: 0.4 in fixed point may be a little less
		blocks = append(blocks, m.last[:shared]...)
	}
	for _, i := range m.random.permutation(hi - lo) {
		b := int32(lo) + i
		if len(blocks) == m.opt.K {
			break
		}
		if !slices.Contains(blocks, b) {
			blocks = append(blocks, b)
		}
	}
	m.last = blocks
	m.request++
	return request{session: m.request - 1, turn: 1, topic: m.region, blocks: blocks}
}
