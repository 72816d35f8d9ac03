package workload

import (
	"cmp"
	"iter"
	"slices"
)

// openSessions is how many conversations run at a time.
const openSessions = 16

// draws is how many draws for each wanted block are made before those blocks are weighed one by one that are left.
const draws = 64

// steeper is how much larger the exponent of places within a topic is than that of topics. With 1, plans for 1500
// requests of k 15 save about as much as for real retrieval of that size, in retrieval order as well as reordered.
const steeper = 1

// request is what a rule makes; a generator gives it names and words.
type request struct {
	session, turn int // from 0 and from 1
	topic, tenant int
	blocks        []int32
}

// found is a block with its place in the list of the topic that it was retrieved for: the less central, the higher.
type found struct{ block, place int32 }

// byTopic draws requests from topics.
type byTopic struct {
	opt        *Options
	topics     *topics
	random     random
	popularity zipf    // of topics
	order      []int32 // topics, the most popular first
	relevance  zipf    // of places in a topic's list
	last       [][]found
	next       []int   // block that each tenant retrieves next; for an overlap of 0
	left       []int64 // blocks that each tenant has left for new sessions; for an overlap of 0

	request   int
	sessions  int // started so far
	open      []*session
	run       int // requests or sessions that the topic of the last one is kept for
	runTopic  int
	shown     marks // blocks that must not be drawn again
	taken     marks // blocks of this request
	weighed   []weighed
	collected []found
}

type session struct {
	id, turn, turns int
	topic           int
	last, shown     []found
}

type weighed struct {
	key uint64
	found
}

func newByTopic(opt *Options) *byTopic {
	m := &byTopic{
		opt: opt, topics: newTopics(opt), random: newRandom(opt.Seed, forRequests, 0),
		popularity: newZipf(opt.Topics, opt.Zipf),
		order:      newRandom(opt.Seed, forPopularity, 0).permutation(opt.Topics),
		last:       make([][]found, opt.Topics),
		shown:      newMarks(opt.Pool), taken: newMarks(opt.Pool),
	}
	m.relevance = newZipf(m.topics.longest(), float64(opt.Zipf+steeper))
	for a := range opt.Tenants {
		lo, hi := opt.tenantBlocks(a)
		m.next, m.left = append(m.next, lo), append(m.left, int64(hi-lo))
	}
	return m
}

func (m *byTopic) draw() request {
	s, slot := m.session()
	s.turn++
	k := m.opt.K - m.opt.KSpread + m.random.Below(2*m.opt.KSpread+1)
	var got []found
	if m.opt.shares() {
		got = m.retrieve(s, k)
	} else {
		got = m.fresh(s, k)
	}
	q := request{session: s.id, turn: s.turn, topic: s.topic, tenant: int(m.topics.tenant[s.topic])}
	for _, f := range got {
		q.blocks = append(q.blocks, f.block)
	}
	m.last[s.topic], s.last = got, got
	for _, f := range got {
		if s.turns > 1 && !slices.ContainsFunc(s.shown, func(o found) bool { return o.block == f.block }) {
			s.shown = append(s.shown, f)
		}
	}
	if s.turn == s.turns {
		m.open = slices.Delete(m.open, slot, slot+1)
	}
	m.request++
	return q
}

// session returns whose turn it is: one of those that are open, or a new one.
func (m *byTopic) session() (s *session, slot int) {
	slot = m.random.Below(min(openSessions, len(m.open)+m.opt.Sessions-m.sessions))
	if slot < len(m.open) {
		return m.open[slot], slot
	}
	s = &session{id: m.sessions, turns: m.opt.Contexts / m.opt.Sessions}
	if s.id < m.opt.Contexts%m.opt.Sessions {
		s.turns++
	}
	m.sessions++
	s.topic = m.topic(s.turns)
	m.open = append(m.open, s)
	return s, len(m.open) - 1
}

// topic draws the topic of a new session.
func (m *byTopic) topic(turns int) int {
	if m.run > 0 {
		m.run--
	} else {
		rank := m.popularity.draw(m.random, m.opt.Topics)
		if drift := int(m.opt.Drift * float64(m.opt.Topics)); drift > 0 {
			rank += m.opt.Topics - part(drift, m.request, m.opt.Contexts)
		}
		m.runTopic = int(m.order[rank%m.opt.Topics])
		if m.opt.Bursts > 1 {
			m.run = m.random.Below(2*m.opt.Bursts - 1)
		}
	}
	if !m.opt.shares() {
		m.runTopic = m.reserve(m.runTopic, int64(turns)*int64(m.opt.kMax()))
	}
	return m.runTopic
}

// reserve puts blocks aside for a session that is never to share one. If the topic's tenant has no longer enough, the
// session goes to the next tenant that has.
func (m *byTopic) reserve(topic int, blocks int64) int {
	for tenant := int(m.topics.tenant[topic]); ; tenant = (tenant + 1) % m.opt.Tenants {
		if m.left[tenant] < blocks {
			continue // one has enough: see completePool
		}
		m.left[tenant] -= blocks
		if tenant != int(m.topics.tenant[topic]) {
			topic, _ = m.opt.tenantTopics(tenant)
		}
		return topic
	}
}

// fresh returns blocks that were never retrieved before.
func (m *byTopic) fresh(s *session, k int) []found {
	tenant := m.topics.tenant[s.topic]
	got := make([]found, k)
	for i := range got {
		got[i].block = int32(m.next[tenant])
		m.next[tenant]++
	}
	return got
}

// retrieve returns k blocks of the session's topic: some that were retrieved before, then new ones.
func (m *byTopic) retrieve(s *session, k int) []found {
	before, share, avoid := s.shown, TurnOverlap, s.shown
	if m.opt.Overlap != nil {
		before, share = s.last, *m.opt.Overlap
		if s.turn == 1 {
			before = m.last[s.topic]
		}
		avoid = before
	}
	m.taken.clear()
	m.shown.clear()
	for _, f := range avoid {
		m.shown.set(f.block)
	}
	m.collected = m.collected[:0]
	if again := m.random.round(fixed(share) * uint64(k)); len(before) > 0 && again > 0 {
		old := m.byRelevance(before)
		for _, w := range old[:min(again, len(old))] {
			m.take(w.found)
		}
	}
	m.fill(s.topic, k)
	got := make([]found, 0, k)
	for _, w := range m.byRelevance(m.collected) {
		got = append(got, w.found)
	}
	return got
}

func (m *byTopic) take(f found) {
	m.taken.set(f.block)
	m.collected = append(m.collected, f)
}

// free reports whether a block may be drawn.
func (m *byTopic) free(block int32) bool {
	return !m.taken.has(block) && !m.shown.has(block) && m.exists(block)
}

func (m *byTopic) exists(block int32) bool {
	return m.topics.born == nil || int(m.topics.born[block]) <= m.request
}

// fill takes blocks until there are k: from the topic's list, each drawn with its weight among those that are left;
// if these do not suffice, blocks of the neighbours; in the end, blocks that were to be avoided.
func (m *byTopic) fill(topic, k int) {
	list := m.topics.list(topic)
	for tries := draws * (k - len(m.collected)); tries > 0 && len(m.collected) < k; tries-- {
		if place := m.relevance.draw(m.random, len(list)); m.free(list[place]) {
			m.take(found{list[place], int32(place)})
		}
	}
	if len(m.collected) == k {
		return
	}
	m.weighed = m.weighed[:0]
	for place, b := range list {
		if m.free(b) {
			// The smallest of such keys are a draw with these weights, without putting back.
			key := m.random.exponential() << 25 / m.relevance.weight[place]
			m.weighed = append(m.weighed, weighed{key, found{b, int32(place)}})
		}
	}
	for _, w := range m.sorted() {
		if len(m.collected) == k {
			return
		}
		m.take(w.found)
	}
	m.fillFrom(m.topics.neighbours(topic), len(list), k)
	m.shown.clear()
	m.fillFrom(slices.Values([]int{topic}), 0, k)
	m.fillFrom(m.topics.neighbours(topic), len(list), k)
}

// fillFrom takes the topics' own blocks in turn, each from a random one on. They count as less central than place.
func (m *byTopic) fillFrom(topics iter.Seq[int], place, k int) {
	for t := range topics {
		if len(m.collected) == k {
			return
		}
		lo, hi := m.opt.topicBlocks(t)
		start := m.random.Below(hi - lo)
		for i := 0; i < hi-lo && len(m.collected) < k; i++ {
			if b := int32(lo + (start+i)%(hi-lo)); m.free(b) {
				m.take(found{b, int32(place)})
				place++
			}
		}
	}
}

// byRelevance sorts blocks by how relevant they are to one question: central ones first as a rule, with noise. The
// block of place p comes before that of place q with probability (q+1)/(p+q+2).
func (m *byTopic) byRelevance(blocks []found) []weighed {
	m.weighed = m.weighed[:0]
	for _, f := range blocks {
		m.weighed = append(m.weighed, weighed{(m.random.exponential() >> 8) * uint64(f.place+1), f})
	}
	return m.sorted()
}

func (m *byTopic) sorted() []weighed {
	slices.SortStableFunc(m.weighed, func(a, b weighed) int { return cmp.Compare(a.key, b.key) })
	return m.weighed
}

// marks is a set of blocks that is emptied at no cost.
type marks struct {
	at  []int32
	now int32
}

func newMarks(blocks int) marks       { return marks{make([]int32, blocks), 1} }
func (m *marks) set(block int32)      { m.at[block] = m.now }
func (m *marks) has(block int32) bool { return m.at[block] == m.now }
func (m *marks) clear()               { m.now++ }
