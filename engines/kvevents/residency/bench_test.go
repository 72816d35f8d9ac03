package residency_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
)

// engine makes events as an engine with a full cache does: prompts of 15 passages of 100 tokens behind one system
// prompt, for each new one as many blocks of the oldest removed, last block first.
type engine struct {
	rng    *rand.Rand
	block  int
	next   uint64
	held   [][]kvevents.Hash // by prompt, oldest first
	blocks int
	limit  int
	system []int
	first  []kvevents.Hash // of the system prompt
}

func newEngine(block, limit int) *engine {
	e := &engine{rng: rand.New(rand.NewPCG(1, 2)), block: block, limit: limit, system: make([]int, 2*block)}
	return e
}

// prompt returns tokens that share passages with others only by chance.
func (e *engine) prompt() []int {
	tokens := slices.Clone(e.system)
	for range 15 * 100 {
		tokens = append(tokens, e.rng.IntN(100_000))
	}
	return tokens
}

// serve returns the events of one request.
func (e *engine) serve(tokens []int) []kvevents.Event {
	var events []kvevents.Event
	n := len(tokens)/e.block - 2
	for e.blocks+n > e.limit {
		oldest := e.held[0]
		e.held = e.held[1:]
		e.blocks -= len(oldest)
		for _, h := range slices.Backward(oldest) {
			events = append(events, kvevents.Event{Kind: kvevents.Removed, Hashes: []kvevents.Hash{h}})
		}
	}
	if e.first == nil {
		e.first = e.names(2)
		events = append(events, kvevents.Event{Kind: kvevents.Stored, Hashes: e.first, Tokens: e.system, BlockSize: e.block})
	}
	ev := kvevents.Event{
		Kind: kvevents.Stored, Hashes: e.names(n), Parent: e.first[1], Tokens: tokens[2*e.block : (n+2)*e.block],
		BlockSize: e.block,
	}
	e.held = append(e.held, ev.Hashes)
	e.blocks += n
	return append(events, ev)
}

func (e *engine) names(n int) []kvevents.Hash {
	list := make([]kvevents.Hash, n)
	for i := range list {
		e.next += 0x9e3779b97f4a7c15
		list[i] = kvevents.Uint(e.next)
	}
	return list
}

const residentBlocks = 100_000

// filled is an index of an engine with residentBlocks blocks and the requests that stored them.
func filled(tb testing.TB, block int) (*residency.Index, *engine) {
	tb.Helper()
	e := newEngine(block, residentBlocks)
	x := residency.New(residency.Config{OnUpdate: func([]residency.Update) {}})
	x.Complete(true)
	for i := 0; e.blocks+2*len(e.system) < residentBlocks; i++ {
		tokens := e.prompt()
		events := e.serve(tokens)
		x.Register(fmt.Sprint("old-", i), tokens, residency.Key{})
		x.Apply(&kvevents.Batch{Events: events})
		x.Served(fmt.Sprint("old-", i))
		if events[0].Kind == kvevents.Removed {
			break
		}
	}
	return x, e
}

// BenchmarkRequest is the index's work for one request of 15 passages of 100 tokens: what of it is resident, its
// registration, its answer, and dropping it.
func BenchmarkRequest(b *testing.B) {
	for _, block := range []int{16, 32} {
		for _, resident := range []bool{false, true} {
			b.Run(fmt.Sprintf("block=%d/resident=%v", block, resident), func(b *testing.B) {
				x, e := filled(b, block)
				tokens := e.prompt()
				if resident {
					x.Apply(&kvevents.Batch{Events: e.serve(tokens)})
				}
				ids := []string{"a", "b", "c", "d"}
				took := make([]time.Duration, 0, 1<<16)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					began := time.Now()
					id := ids[i%len(ids)]
					x.Prefix(tokens, residency.Key{})
					x.Register(id, tokens, residency.Key{})
					x.Served(id)
					x.Drop(id)
					if len(took) < cap(took) {
						took = append(took, time.Since(began))
					}
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
				b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
			})
		}
	}
}

// BenchmarkApply applies what a full engine publishes for requests: one removal for each of about 94 blocks (47 of
// 32 tokens), and one event that stores as many.
func BenchmarkApply(b *testing.B) {
	for _, block := range []int{16, 32} {
		b.Run(fmt.Sprintf("block=%d", block), func(b *testing.B) {
			x, e := filled(b, block)
			batches := make([]kvevents.Batch, 2000)
			events := 0
			for i := range batches {
				batches[i].Events = e.serve(e.prompt())
				events += len(batches[i].Events)
			}
			b.ReportAllocs()
			n := 0
			for i := 0; b.Loop(); i++ {
				if i%len(batches) == 0 && i > 0 { // again, with other blocks
					b.StopTimer()
					for j := range batches {
						batches[j].Events = e.serve(e.prompt())
					}
					b.StartTimer()
				}
				batch := &batches[i%len(batches)]
				x.Apply(batch)
				n += len(batch.Events)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/event")
			if s := x.Stats(); s.Unknown+s.Orphans > 0 {
				b.Fatalf("%+v", s)
			}
		})
	}
}

// BenchmarkMemory reports the memory of resident blocks and of requests on them.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		before := heap()
		x, e := filled(b, 16)
		e.held = nil
		blocks := heap() - before
		s := x.Stats()
		tokens := e.prompt()
		before = heap()
		for i := range 50_000 {
			x.Register(fmt.Sprint("request-", i), tokens, residency.Key{})
		}
		requests := heap() - before
		b.ReportMetric(float64(blocks)/float64(s.Blocks), "B/block")
		b.ReportMetric(float64(requests)/50_000, "B/request")
		runtime.KeepAlive(x)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
