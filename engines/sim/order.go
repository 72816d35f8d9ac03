package sim

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Order says which of the waiting requests a [Server] admits first. The zero value is first come, first served; several ideas may be
// used together. They are those of Strata (Xie et al., §4.3), and SGLang's longest prefix match, which that paper compares with.
type Order struct {
	// LongestPrefix admits requests first of which most is in a tier.
	LongestPrefix bool
	// Defer passes over a request while another one computes, or waits before it to compute, more than DeferTokens tokens that it
	// shares and that are in no tier yet (a delay hit, §4.3.1). It is admitted next when they are there.
	Defer bool
	// Balance admits requests together whose loading can be hidden behind what they compute (§4.3.2, Algorithm 1): the first one, then
	// those that share what is being loaded already (bundle hits), then those that keep the tokens to load below LoadRatio times the tokens
	// to compute, then the others.
	Balance bool
	// Fill lets running requests decode while a batch is loaded that would keep the engine waiting (§4.3.3).
	Fill bool
}

// The constants of an [Order].
const (
	// DeferTokens and LoadRatio are Strata's.
	DeferTokens = 100
	LoadRatio   = 100
	// MaxOvertaken is the number of later requests that may be admitted before one that waits. Then it is the next, whatever the order
	// says. Those of the step in which the number is reached come on top.
	MaxOvertaken = 128
	// window is the number of waiting requests that are compared; those behind them wait for their turn.
	window = 256
)

// orderNames are the parts of an order's name.
var orderNames = []struct {
	name string
	part func(*Order) *bool
}{
	{"lpm", func(o *Order) *bool { return &o.LongestPrefix }},
	{"defer", func(o *Order) *bool { return &o.Defer }},
	{"balance", func(o *Order) *bool { return &o.Balance }},
	{"bubble", func(o *Order) *bool { return &o.Fill }},
}

// ParseOrder reads fifo, or lpm, defer, balance, bubble, several of which may be joined by "+". strata stands for defer+balance+bubble.
func ParseOrder(text string) (Order, error) {
	var o Order
	switch text {
	case "fifo":
		return o, nil
	case "strata":
		return Order{Defer: true, Balance: true, Fill: true}, nil
	}
parts:
	for part := range strings.SplitSeq(text, "+") {
		for _, n := range orderNames {
			if n.name == part {
				*n.part(&o) = true
				continue parts
			}
		}
		return Order{}, fmt.Errorf("%q: want fifo, strata, or lpm, defer, balance, bubble joined by +", text)
	}
	return o, nil
}

// String returns what [ParseOrder] reads.
func (o Order) String() string {
	var parts []string
	for _, n := range orderNames {
		if *n.part(&o) {
			parts = append(parts, n.name)
		}
	}
	return cmp.Or(strings.Join(parts, "+"), "fifo")
}

// match is where the blocks of a waiting request are, see [cache.levels].
type match struct {
	reach   [3]int
	ready   int // blocks that need not be computed if it is admitted now
	version int // of the cache
}

func (s *Server) match(j *job) {
	m := &j.match
	if m.version == s.cache.version+1 {
		return
	}
	m.version, m.reach = s.cache.version+1, s.cache.levels(&j.prompt)
	m.ready = m.reach[2]
	if s.options.Tiers.Prefetch {
		m.ready = m.reach[1]
	}
}

// toLoad returns how many tokens are to be loaded.
func (s *Server) toLoad(m match) int { return (m.ready - m.reach[0]) * s.cache.blockTokens }

// toCompute returns how many are to be computed.
func (s *Server) toCompute(j *job) int { return j.prompt.tokens - j.match.ready*s.cache.blockTokens }

// candidates returns the queued requests that may be admitted now, best first, and those that are deferred. Urgent ones come first.
func (s *Server) candidates() (ready, deferred []*job) {
	queue := s.queue[:min(len(s.queue), window)]
	if s.options.Order == (Order{}) {
		return slices.Clone(queue), nil
	}
	for _, j := range queue {
		s.match(j)
		j.deferred = false
	}
	ahead := map[key][]*prompt{} // whose beginnings are not ready yet, by the first block of which that is true
	if s.options.Order.Defer && s.options.Publish > 0 {
		for _, j := range s.running {
			if p := &j.prompt; !p.oversize && p.named < p.full() {
				k := p.chain.keys[p.named]
				ahead[k] = append(ahead[k], p)
			}
		}
	}
	for _, j := range queue {
		p := &j.prompt
		urgent := j.overtaken >= MaxOvertaken
		if at := j.match.reach[2]; s.options.Order.Defer && s.options.Publish > 0 && at < p.full() {
			k := p.chain.keys[at]
			if !urgent && slices.ContainsFunc(ahead[k], func(o *prompt) bool {
				return shared(p.chain.keys[at:], o.chain.keys[at:o.full()])*s.cache.blockTokens > DeferTokens
			}) {
				j.deferred = true
				deferred = append(deferred, j)
				continue
			}
			ahead[k] = append(ahead[k], p)
		}
		ready = append(ready, j)
	}
	if s.options.Order.LongestPrefix {
		slices.SortStableFunc(ready, func(a, b *job) int { return cmp.Compare(b.match.ready, a.match.ready) })
	}
	slices.SortStableFunc(ready, func(a, b *job) int {
		switch ua, ub := a.overtaken >= MaxOvertaken, b.overtaken >= MaxOvertaken; {
		case ua && ub:
			return cmp.Compare(a.number, b.number)
		case ua:
			return -1
		case ub:
			return 1
		}
		return 0
	})
	return ready, deferred
}

// shared returns the number of keys that two prompts have in common at the beginning.
func shared(a, b []key) int {
	return sort.Search(min(len(a), len(b)), func(i int) bool { return a[i] != b[i] })
}

// admitQueued admits queued requests while take does. It forms the batch as the order says.
func (s *Server) admitQueued(take func(*job) bool) {
	if len(s.queue) == 0 {
		return
	}
	ready, deferred := s.candidates()
	s.cache.moves.Deferred += len(deferred)
	taken := 0
	accept := func(j *job) bool {
		if !take(j) {
			return false
		}
		j.queued = false
		taken++
		return true
	}
	if s.options.Order.Balance {
		s.balance(ready, accept)
	} else {
		for _, j := range ready {
			if !accept(j) {
				break
			}
		}
	}
	if taken == 0 {
		return
	}
	s.requeue(ready, deferred)
}

// requeue takes admitted requests out of the queue, moves the deferred ones to its front, and counts who was overtaken.
func (s *Server) requeue(ready, deferred []*job) {
	var numbers []int // of those admitted, in order
	for _, j := range ready {
		if !j.queued {
			numbers = append(numbers, j.number)
		}
	}
	slices.Sort(numbers)
	queue := append(s.spare[:0], deferred...)
	for _, j := range s.queue {
		if j.queued && !j.deferred {
			queue = append(queue, j)
		}
	}
	clear(s.queue)
	s.queue, s.spare = queue, s.queue[:0]
	for _, j := range queue {
		at, _ := slices.BinarySearch(numbers, j.number)
		j.overtaken += len(numbers) - at
	}
}

// balance is Algorithm 1.
func (s *Server) balance(ready []*job, accept func(*job) bool) {
	load, compute := 0, 0
	bundles := map[key][]*job{} // those that load, by the first block that they load
	bundle := func(j *job) key { return j.prompt.chain.keys[j.match.reach[0]] }
	loads := func(j *job) bool { return j.match.ready > j.match.reach[0] }
	for _, j := range ready {
		if loads(j) {
			bundles[bundle(j)] = append(bundles[bundle(j)], j)
		}
	}
	full := false
	add := func(j *job) {
		loaded := s.cache.moves.Host
		if full = !accept(j); full {
			return
		}
		load += s.cache.moves.Host - loaded // less than toLoad if others load the same
		compute += s.toCompute(j)
	}
	addWithBundle := func(j *job) {
		if add(j); full || !loads(j) {
			return
		}
		for _, other := range bundles[bundle(j)] {
			if other.queued && !full {
				add(other)
			}
		}
	}
	var bound []*job
	for i, j := range ready {
		switch {
		case full:
			return
		case !j.queued: // a bundle hit
		case i > 0 && j.overtaken < MaxOvertaken && load+s.toLoad(j.match) > LoadRatio*(compute+s.toCompute(j)):
			bound = append(bound, j)
		default:
			addWithBundle(j)
		}
	}
	for _, j := range bound {
		if full {
			return
		}
		if j.queued {
			add(j)
		}
	}
}
