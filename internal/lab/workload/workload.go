package workload

import (
	"iter"
	"slices"
	"strconv"

	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

// Generator makes the requests and the blocks of a workload. Both may be walked any number of times and are always the
// same; walks that run at the same time do not disturb each other.
type Generator struct {
	opt    Options
	number []int32 // of each block: its ID says nothing about its topic
	block  []int32 // of each number
}

// New returns a Generator. An option that cannot be met is an [*OptionError].
func New(opt Options) (*Generator, error) {
	if opt.Overlap != nil {
		opt.Overlap = new(*opt.Overlap)
	}
	if err := opt.complete(); err != nil {
		return nil, err
	}
	g := &Generator{opt: opt, block: make([]int32, opt.Pool)}
	g.number = newRandom(opt.Seed, forIDs, 0).permutation(opt.Pool)
	for b, n := range g.number {
		g.block[n] = int32(b)
	}
	return g, nil
}

// Generate returns a whole workload: its requests in order, each with its blocks in retrieval order, and all blocks of
// its pool.
func Generate(opt Options) ([]trace.Request, *trace.Blocks, error) {
	g, err := New(opt)
	if err != nil {
		return nil, nil, err
	}
	requests := slices.Collect(g.Requests())
	blocks, err := trace.NewBlocks(slices.Collect(g.Blocks())...)
	return requests, blocks, err
}

// Requests walks the requests in order.
func (g *Generator) Requests() iter.Seq[trace.Request] {
	return func(yield func(trace.Request) bool) {
		draw := g.drawer()
		words := newLanguage(g.opt.Seed, g.opt.Topics)
		for i := range g.opt.Contexts {
			q := draw()
			out := trace.Request{
				ID:      "r" + strconv.Itoa(i),
				Session: g.of(q.tenant) + "s" + strconv.Itoa(q.session),
				Turn:    q.turn,
				Query:   words.question(newRandom(g.opt.Seed, forQueries, i), q.topic),
				Docs:    make([]string, len(q.blocks)),
			}
			for j, b := range q.blocks {
				out.Docs[j] = g.id(q.tenant, b)
			}
			if !yield(out) {
				return
			}
		}
	}
}

// Blocks walks all blocks of the pool, by the number in their ID.
func (g *Generator) Blocks() iter.Seq[trace.Block] {
	return func(yield func(trace.Block) bool) {
		words := newLanguage(g.opt.Seed, g.opt.Topics)
		topic, tenant := make([]int32, g.opt.Pool), make([]int32, g.opt.Pool)
		for a := range g.opt.Tenants {
			for t, end := g.opt.tenantTopics(a); t < end; t++ {
				for b, stop := g.opt.topicBlocks(t); b < stop; b++ {
					topic[b], tenant[b] = int32(t), int32(a)
				}
			}
		}
		for _, b := range g.block {
			r := newRandom(g.opt.Seed, forText, int(b))
			n := g.opt.BlockTokens
			if !g.opt.EqualBlocks {
				n = length(r, n)
			}
			if !yield(trace.Block{ID: g.id(int(tenant[b]), b), Text: words.text(r, int(topic[b]), n)}) {
				return
			}
		}
	}
}

func (g *Generator) drawer() func() request {
	switch g.opt.rule {
	case ruleRegions, ruleDisjoint:
		return newByRegion(&g.opt, g.opt.rule == ruleDisjoint).draw
	case ruleCities:
		return newByCity(&g.opt).draw
	}
	return newByTopic(&g.opt).draw
}

// of returns what IDs of a tenant begin with.
func (g *Generator) of(tenant int) string {
	if g.opt.Tenants == 1 {
		return ""
	}
	return "t" + strconv.Itoa(tenant) + "-"
}

func (g *Generator) id(tenant int, block int32) string {
	return g.of(tenant) + "b" + strconv.Itoa(int(g.number[block]))
}
