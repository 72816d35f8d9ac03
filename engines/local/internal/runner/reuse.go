package runner

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ragpilot/ragpilot/engines/local/internal/kvstore"
	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// Reuse has the blocks of a prompt taken from where they were computed before, at any position, and a part of their tokens computed again
// (ProphetKV, §4). The keys and values of such a request are its own: no other request finds them.
type Reuse struct {
	// Blocks are the parts of the prompt that are blocks, in order. Whatever stands between them is computed.
	Blocks []Extent
	// Head is how many of the prompt's first tokens each block was computed behind: see [BlockTokens].
	Head int
	// Exact is how many of the prompt's first tokens may be taken from the cache as in any other request.
	Exact int
	// Share is how many of the blocks' tokens are computed again, from 0 to 1.
	Share float64
	// Selector chooses them.
	Selector Selector
}

// Extent is a part of a prompt: tokens From to To-1.
type Extent struct{ From, To int }

// BlockTokens are the tokens in whose pages a block's keys and values are found: the head, the block, and as many tokens of no meaning as
// fill the last page. What a token is does not depend on those behind it.
func BlockTokens(prompt []int32, head int, block Extent) []int32 {
	tokens := append(slices.Clone(prompt[:head]), prompt[block.From:block.To]...)
	for len(tokens)%kvstore.PageTokens > 0 {
		tokens = append(tokens, 0)
	}
	return tokens
}

// source is a block's pages.
type source struct {
	block    Extent
	sequence *kvstore.Sequence
	found    int // of the block's first tokens
}

// assembly is how far the prompt of a run with [Reuse] is.
type assembly struct {
	reuse   *Reuse
	tokens  []int32 // prompt, and what was generated or is forced
	prompt  int     // tokens of it
	pages   []gpu.Page
	exact   int // tokens that were found as in any other request
	tail    int // the first token behind the last block
	sources []source
	state   []uint8 // of each token before the tail
	phase   phase
	todo    []int // positions that the phase computes, in order
	done    int   // of them
	probe   *compute.Probe
	chosen  []int // tokens to be computed again; nil: not chosen yet
	counted int   // tokens computed again, with those that had to be
}

// What a token before the tail is.
const (
	exactToken   uint8 = iota // right as it is
	copiedToken               // in place, and computed in another context
	missingToken              // not there
)

type phase uint8

const (
	copying   phase = iota
	observing       // stage I: what is behind the blocks looks at them
	repairing       // stage II: the chosen tokens are computed again
	assembled
)

// beginReuse makes the sequence of a run with Reuse. It reports false, and changes nothing, if there is no room.
func (x *Run) beginReuse(store *kvstore.Store) bool {
	r := x.request.Reuse
	a := &assembly{reuse: r, tokens: x.tokens, prompt: x.prompt, tail: r.Blocks[len(r.Blocks)-1].To}
	// A run that waits is asked before each step: what hashes nothing comes first.
	own := (len(x.tokens)+kvstore.PageTokens-1)/kvstore.PageTokens - min(r.Exact, a.tail)/kvstore.PageTokens
	if len(x.runner.running) > 0 && !store.Room(own) {
		return false
	}
	if x.assembly != nil {
		a.chosen = x.assembly.chosen // it was preempted
	}
	for _, b := range r.Blocks {
		s := source{block: b, sequence: store.Attach(BlockTokens(x.tokens, r.Head, b), x.request.Salt)}
		if s.sequence != nil {
			s.found = min(max(0, s.sequence.Computed()-r.Head), b.To-b.From)
		}
		a.sources = append(a.sources, s)
	}
	for {
		x.sequence = store.BeginPrivate(x.tokens, min(r.Exact, a.tail), x.request.Salt)
		if x.sequence != nil {
			break
		}
		if len(a.sources) == 0 || len(x.runner.running) > 0 {
			a.close()
			return false
		}
		last := len(a.sources) - 1 // no other run will make room: what this one lacks, it computes
		a.sources[last].close()
		a.sources = a.sources[:last]
	}
	a.exact, a.pages = x.sequence.Computed(), x.sequence.Pages()
	a.look()
	x.assembly = a
	return true
}

// look finds out what is there of each token before the tail. A block that stands where it was computed is right.
func (a *assembly) look() {
	a.state = slices.Repeat([]uint8{missingToken}, a.tail)
	clear(a.state[:min(a.exact, a.tail)])
	for _, s := range a.sources {
		state := copiedToken
		if s.block.From == a.reuse.Head {
			state = exactToken
		}
		for i := max(s.block.From, a.exact); i < s.block.From+s.found; i++ {
			a.state[i] = state
		}
	}
	if a.reuse.Head > 0 && a.reuse.Head == a.reuse.Blocks[0].From && len(a.sources) > 0 && a.sources[0].found > 0 {
		for i := a.exact; i < a.reuse.Head; i++ { // the first block's pages have the head's last tokens
			a.state[i] = exactToken
		}
	}
}

func (s *source) close() {
	if s.sequence != nil {
		s.sequence.Close()
		s.sequence = nil
	}
}

// close gives the blocks' pages back.
func (a *assembly) close() {
	if a == nil {
		return
	}
	for i := range a.sources {
		a.sources[i].close()
	}
}

// copy puts what the blocks' pages have in its place.
func (a *assembly) copy(worker *llama.Worker) {
	for i, s := range a.sources {
		if s.found == 0 {
			continue
		}
		head, from := a.reuse.Head, s.block.From
		if i == 0 && from == head && a.exact < head {
			worker.Copy(a.pages, a.exact, s.sequence.Pages(), a.exact, head-a.exact)
		}
		if skip := max(0, a.exact-from); skip < s.found {
			worker.Copy(a.pages, from+skip, s.sequence.Pages(), head+skip, s.found-skip)
		}
	}
}

// work does what needs no step of its own: it puts the blocks in place, and chooses tokens where what the tail looks at does not decide.
func (a *assembly) work(model *llama.Model, worker *llama.Worker) error {
	a.copy(worker)
	if a.chosen == nil {
		if err := a.study(model, worker); err != nil {
			return err
		}
	}
	return worker.Sync()
}

// missing returns the positions before the tail that have nothing yet.
func (a *assembly) missing() []int {
	var all []int
	for i, s := range a.state {
		if s == missingToken {
			all = append(all, i)
		}
	}
	return all
}

// budget is how many tokens are computed again of those that were copied.
func (a *assembly) budget() int {
	reused := 0
	for _, b := range a.reuse.Blocks {
		for _, s := range a.state[b.From:b.To] {
			if s != missingToken {
				reused++
			}
		}
	}
	return int(math.Ceil(a.reuse.Share*float64(reused) - 1e-9))
}

// advance notes that n tokens of the phase were computed, and goes on to the next phase when those were all.
func (a *assembly) advance(model *llama.Model, n int) {
	if a.done += n; a.done < len(a.todo) {
		return
	}
	switch {
	case a.phase == copying && a.chosen == nil:
		a.close()
		a.phase, a.done, a.todo = observing, 0, a.missing()
		a.probe = compute.NewProbe(model.Shape(), a.tail)
		for i := a.tail; i < a.prompt; i++ {
			a.todo = append(a.todo, i)
		}
	case a.phase == repairing:
		a.phase = assembled
	default:
		computed := a.missing()
		if a.phase == observing {
			value := sumHeads(a.probe)
			if a.reuse.Selector != Attention {
				a.weigh(value)
			}
			if a.reuse.Selector == Ranked {
				a.rank(value)
			}
			a.chosen = a.top(value)
			a.settle()
		}
		a.close()
		a.phase, a.probe, a.done = repairing, nil, 0
		a.todo, a.counted = union(a.missing(), a.chosen), len(union(computed, a.chosen))
		if len(a.todo) == 0 {
			a.phase = assembled
		}
	}
}

// union returns the numbers that are in either, in order. A run that begins again may miss what it has chosen.
func union(x, y []int) []int {
	both := slices.Concat(x, y)
	slices.Sort(both)
	return slices.Compact(both)
}

// settle notes that tokens which were computed behind exact ones alone are exact.
func (a *assembly) settle() {
	for i, s := range a.state {
		if s == copiedToken {
			return
		}
		a.state[i] = exactToken
	}
}

// sumHeads adds up a probe's heads.
func sumHeads(p *compute.Probe) []float32 {
	sums := make([]float32, p.Tokens)
	for i, x := range p.Sums {
		sums[i%p.Tokens] += x
	}
	return sums
}

// Of equal attention, the first token of a block counts firstWeight times as much more as one that is far behind; the difference falls to a
// third every firstTokens tokens.
const (
	firstWeight = 8
	firstTokens = 48
)

// weigh counts the first tokens of a block for more: they have seen the least of it, and so change most with what comes to stand in front.
// That is not in the paper. With both constants as they are, chosen on 12 texts (Go's own documentation, which no test uses), the KL
// divergence that a tenth computed again removes behind a head rose from 0.35 of naive reuse's to 0.47.
func (a *assembly) weigh(value []float32) {
	for _, b := range a.reuse.Blocks {
		for i := b.From; i < b.To; i++ {
			value[i] *= float32(1 + firstWeight*math.Exp(-float64(i-b.From)/firstTokens))
		}
	}
}

// rank counts a block for less the further back the retriever has put it: the one of rank r, whose prompt has the retriever's order, for
// 1/r.
func (a *assembly) rank(value []float32) {
	for r, b := range a.reuse.Blocks {
		for i := b.From; i < b.To; i++ {
			value[i] /= float32(r + 1)
		}
	}
}

// top returns the tokens of the highest value that may be computed again, as many as the budget has, in order. Of equal ones the first is
// taken.
func (a *assembly) top(value []float32) []int {
	copied, count := slices.Repeat([]float32{float32(math.Inf(-1))}, a.tail), 0
	for i, s := range a.state {
		if s == copiedToken {
			copied[i] = value[i]
			count++
		}
	}
	return compute.Largest(copied, min(count, a.budget()))
}

// spans returns the next of the phase's tokens, at most limit, as spans, and how many they are.
func (a *assembly) spans(limit, layers int) (spans []llama.Span, n int) {
	rest := a.todo[a.done:]
	if n = min(limit, len(rest)); a.phase == observing && n < len(rest) {
		// What the tail looks at adds up in whole blocks of rows, so that it does not depend on the steps.
		if over := rest[n] - a.tail; over > 0 && n > over%kvstore.PageTokens {
			n -= over % kvstore.PageTokens
		}
	}
	for i := 0; i < n; {
		j := i + 1
		for j < n && rest[j] == rest[j-1]+1 && rest[j] != a.tail {
			j++
		}
		s := llama.Span{Tokens: a.tokens[rest[i] : rest[i]+j-i], Position: rest[i], Pages: a.pages}
		if a.phase == observing && rest[i] >= a.tail {
			s.Probes = slices.Repeat([]*compute.Probe{a.probe}, layers)
		}
		spans = append(spans, s)
		i = j
	}
	return spans, n
}

// Selector chooses which tokens of reused blocks are computed again.
type Selector uint8

// The selectors. Those behind Prophet are for comparison; CacheBlend, KVShare and Ideal compute much more than they save.
const (
	Prophet    Selector = iota // what the tail attends to, over all layers (ProphetKV, Eq. 7), and the first tokens of a block before others
	Attention                  // what the tail attends to, as in the paper
	None                       // no token
	Random                     // any
	EPIC                       // the first of each block
	CacheBlend                 // those whose values of the second layer differ most
	KVShare                    // these differences, weighed with what the tail attends to in the first two layers
	Ideal                      // those whose part in what the tail takes in differs most (ProphetKV, Eq. 5)
	Ranked                     // as Prophet, and a block counts for less the further back its rank is
)

// SelectorNames are the names of selectors.
var SelectorNames = []string{"prophet", "attention", "none", "random", "epic", "cacheblend", "kvshare", "ideal", "ranked"}

// study chooses tokens by anything but the tail's attention in a step of its own.
func (a *assembly) study(model *llama.Model, worker *llama.Worker) (err error) {
	value := make([]float32, a.tail)
	switch s := a.reuse.Selector; {
	case a.budget() == 0 || s == None || !slices.Contains(a.state, copiedToken):
		a.chosen = []int{}
		return nil
	case a.reuse.Share >= 1: // all, whatever their value
	case s == Prophet || s == Attention || s == Ranked:
		return nil
	case s == Random:
		random := rand.New(rand.NewPCG(uint64(a.tail), uint64(a.prompt)))
		for i := range value {
			value[i] = random.Float32()
		}
	case s == EPIC:
		for _, b := range a.reuse.Blocks {
			for i := b.From; i < b.To; i++ {
				value[i] = -float32(i - b.From)
			}
		}
	default:
		if value, err = a.compare(model, worker); err != nil {
			return err
		}
	}
	a.chosen = a.top(value)
	return nil
}
