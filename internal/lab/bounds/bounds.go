package bounds

import (
	"context"
	"fmt"
	"slices"

	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// Problem is what counts of a trace: which documents stand behind the shared system prompt, and their weights.
type Problem struct {
	// Tokens is the weight of all documents of all requests: what is sent when nothing is saved.
	Tokens int
	// Repeated is the weight of the documents that an earlier turn of the same session retrieved, too. References
	// save all of it.
	Repeated int

	blocks  *trace.Blocks
	history bool
	number  map[string]int32          // block ID -> index in weight
	weight  []int32                   // tokens of each block in markup
	sets    [][]int32                 // blocks of each request that stand behind the system prompt
	shown   map[string]map[int32]bool // session -> its blocks so far
}

// New returns a Problem without requests. Blocks gives the texts that are counted; with nil each document weighs 1.
// Without history every request is a first turn.
func New(blocks *trace.Blocks, history bool) *Problem {
	return &Problem{blocks: blocks, history: history, number: map[string]int32{}, shown: map[string]map[int32]bool{}}
}

// Add appends the next request of the trace. It is an error if a document has no text.
func (p *Problem) Add(q trace.Request) error {
	set := make([]int32, len(q.Docs))
	sum := 0
	for i, id := range q.Docs {
		b, ok := p.number[id]
		if !ok {
			w := 1
			if p.blocks != nil {
				text, known := p.blocks.Text(id)
				if !known {
					return fmt.Errorf("request %q: unknown block %q", q.ID, id)
				}
				w = tokens.Count(trace.Doc(id, text))
			}
			b = int32(len(p.weight))
			p.number[id] = b
			p.weight = append(p.weight, int32(w))
		}
		set[i] = b
		sum += int(p.weight[b])
	}
	p.Tokens += sum
	if !p.history {
		p.sets = append(p.sets, set)
		return nil
	}
	shown := p.shown[q.Session]
	if shown == nil {
		shown = make(map[int32]bool, len(set))
		p.shown[q.Session] = shown
		p.sets = append(p.sets, set)
	}
	for _, b := range set { // no block is twice in set
		if shown[b] {
			p.Repeated += int(p.weight[b])
		}
		shown[b] = true
	}
	return nil
}

// Requests returns the number of requests that can share a prefix with others: first turns, or all of them without
// history.
func (p *Problem) Requests() int { return len(p.sets) }

// Blocks returns the number of different documents.
func (p *Problem) Blocks() int { return len(p.weight) }

// Share returns which share of all document tokens is saved by a bound and by references together.
func (p *Problem) Share(bound int) float64 {
	if p.Tokens == 0 {
		return 0
	}
	return float64(bound+p.Repeated) / float64(p.Tokens)
}

// postings lists for each block the requests that have it, in order.
type postings struct {
	start []int // of each block's list, and the end of the last
	list  []int32
}

func (p *Problem) postings() postings {
	x := postings{start: make([]int, len(p.weight)+1)}
	for _, set := range p.sets {
		for _, b := range set {
			x.start[b+1]++
		}
	}
	for b := range p.weight {
		x.start[b+1] += x.start[b]
	}
	x.list = make([]int32, x.start[len(p.weight)])
	at := slices.Clone(x.start)
	for i, set := range p.sets {
		for _, b := range set {
			x.list[at[b]] = int32(i)
			at[b]++
		}
	}
	return x
}

// of returns the requests that have the block.
func (x postings) of(b int32) []int32 { return x.list[x.start[b]:x.start[b+1]] }

// checkEvery is how many requests are worked on between two looks at the context.
const checkEvery = 64

func interrupted(ctx context.Context, i int) error {
	if i%checkEvery != 0 {
		return nil
	}
	return ctx.Err()
}
