package tree_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot/internal/tree"
)

// paths returns n paths of k blocks, at every step one of 16, and an end of its own for each.
func paths(n, k int) [][]tree.Elem {
	out := make([][]tree.Elem, n)
	seed := uint64(1)
	for i := range out {
		for range k {
			seed = seed*6364136223846793005 + 1442695040888963407
			out[i] = append(out[i], tree.Elem{Key: seed >> 60, Tokens: 200})
		}
		out[i] = append(out[i], tree.Elem{Key: seed | 1<<63, Tokens: 20})
	}
	return out
}

// loaded returns an index of the paths, with request IDs of 20 bytes.
func loaded(ps [][]tree.Elem) *tree.Tree {
	x := tree.New(0, 0, nil)
	for i, p := range ps {
		x.Insert(fmt.Sprintf("request-%012d", i), p)
	}
	return x
}

// sizes runs a benchmark for a number of live requests and blocks in each.
func sizes(b *testing.B, f func(b *testing.B, live, k int)) {
	for _, k := range []int{15, 100} {
		for _, live := range []int{1_000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("k=%d/live=%d", k, live), func(b *testing.B) { f(b, live, k) })
		}
	}
}

// BenchmarkFootprint reports what the index holds per live request, its ID included.
func BenchmarkFootprint(b *testing.B) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	sizes(b, func(b *testing.B, live, k int) {
		ps := paths(live, k)
		for b.Loop() {
			before := heap()
			x := loaded(ps)
			b.ReportMetric(float64(heap()-before)/float64(live), "B/request")
			b.ReportMetric(float64(x.Nodes())/float64(live), "nodes/request")
		}
	})
}

// Removal costs the path, not the index.
func BenchmarkInsertRemove(b *testing.B) {
	sizes(b, func(b *testing.B, live, k int) {
		const guests = 1024
		ps := paths(live+guests, k)
		x := loaded(ps[:live])
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			x.Insert("guest", ps[live+i%guests])
			x.Remove("guest")
			i++
		}
	})
}

// BenchmarkWalk follows the path of a live request: one look-up per step.
func BenchmarkWalk(b *testing.B) {
	sizes(b, func(b *testing.B, live, k int) {
		ps := paths(live, k)
		x := loaded(ps)
		i := 0
		for b.Loop() {
			if _, steps, _ := x.Walk(ps[i%live]); steps != k+1 {
				b.Fatalf("%d steps of %d", steps, k+1)
			}
			i += 7919 // a prime: the next path lies elsewhere
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*(k+1)), "ns/step")
	})
}

// BenchmarkChild looks for children that are there and for such that are not, every other time.
func BenchmarkChild(b *testing.B) {
	for _, fanout := range []int{1, 4, 16, 1_000, 100_000} {
		b.Run(fmt.Sprint("fanout=", fanout), func(b *testing.B) {
			x := tree.New(0, 0, nil)
			for i := range fanout {
				x.Insert(fmt.Sprint(i), []tree.Elem{{Key: uint64(2 * i), Tokens: 1}})
			}
			i, found := 0, 0
			for b.Loop() {
				if _, ok := x.Child(tree.Root, uint64(i%(2*fanout))); ok {
					found++
				}
				i += 7919
			}
			if found < b.N/2-1 {
				b.Fatalf("found %d of %d", found, b.N)
			}
		})
	}
}
