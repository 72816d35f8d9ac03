package minilm

import (
	"context"
	"sync"
	"sync/atomic"
)

// batchTokens is how many tokens are computed together, if texts are shorter: enough for a weight that was fetched from
// memory to be used often, and few enough that batches spread over the cores.
const batchTokens = 128

// shortTokens is the length up to which documents are computed without a stop: a question waits for one of them,
// some 25 ms on two cores. If each question stopped them, searches without a pause would hold up all adds.
const shortTokens = 64

// batch is the texts with the numbers from first on.
type batch struct {
	first  int
	tokens [][]int32
	rows   int // the tokens of all
}

// batches tokenizes the texts and groups neighbours.
func (m *Model) batches(ctx context.Context, texts []string) ([]batch, error) {
	var all []batch
	for i, text := range texts {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		ids := m.tokenizer.encode(text, m.limit)
		if last := len(all) - 1; last < 0 || all[last].rows+len(ids) > max(batchTokens, m.limit) {
			all = append(all, batch{first: i})
		}
		b := &all[len(all)-1]
		b.tokens = append(b.tokens, ids)
		b.rows += len(ids)
	}
	return all, nil
}

// embed computes batch after batch on as many cores as are free, one at least. Questions go before documents; long ones give way to them
// after each layer.
func (m *Model) embed(ctx context.Context, texts []string, question bool) ([][]float32, error) {
	all, err := m.batches(ctx, texts)
	if err != nil {
		return nil, err
	}
	vectors := make([][]float32, len(texts))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(cap(m.free), len(all)) {
		group.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(all); i = next.Add(1) - 1 {
				if err := m.compute(ctx, all[i], question, vectors); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return vectors, nil
}

// compute waits for a core, and takes the others too while no other call waits for them.
func (m *Model) compute(ctx context.Context, b batch, question bool, vectors [][]float32) error {
	threads, err := m.cores.take(ctx, question)
	if err != nil {
		return err
	}
	defer func() { m.cores.give(threads) }()
	s := m.borrow()
	defer m.giveBack(s)
	return m.forward(ctx, s, b, func() (n int, err error) {
		if !question && b.rows > shortTokens {
			threads, err = m.cores.giveWay(ctx, threads)
		}
		return threads, err
	}, vectors)
}

// borrow returns memory for one forward pass.
func (m *Model) borrow() *scratch {
	select {
	case s := <-m.free:
		return s
	default:
		return new(scratch)
	}
}

// giveBack keeps the memory for the next pass, as many of them as there are cores.
func (m *Model) giveBack(s *scratch) {
	select {
	case m.free <- s:
	default:
	}
}

// each runs f on parts of 0…n that together are all of it, each part in a goroutine of its own, and waits for them.
func each(threads, n int, f func(from, to int)) {
	threads = min(threads, n)
	if threads <= 1 {
		f(0, n)
		return
	}
	var group sync.WaitGroup
	for i := range threads {
		group.Go(func() { f(i*n/threads, (i+1)*n/threads) })
	}
	group.Wait()
}
