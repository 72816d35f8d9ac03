package offline_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/prompt/offline"
)

// generate draws n requests of k blocks. Each has one of n/50 topics, whose list of blocks is drawn from a pool of
// n/3; a block's popularity falls with its place in the list (Zipf, exponent 1). With drift, the lists turn over
// during the run.
func generate(seed uint64, n, k int, drift bool) (sets [][]int32, weight []int32, total int64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	pool, list := max(n/3, 5*k), 5*k
	weight = make([]int32, pool)
	for d := range weight {
		weight[d] = int32(80 + rnd.IntN(240))
	}
	cum := make([]float64, list)
	sum := 0.0
	for i := range cum {
		sum += 1 / float64(i+1)
		cum[i] = sum
	}
	topics := make([][]int32, max(n/50, 1))
	for t := range topics {
		topics[t] = distinctBlocks(list, func() int32 { return int32(rnd.IntN(pool)) })
	}
	sets = make([][]int32, n)
	for i := range sets {
		topic := topics[rnd.IntN(len(topics))]
		shift := 0
		if drift {
			shift = i * list / n
		}
		sets[i] = distinctBlocks(k, func() int32 {
			at, _ := slices.BinarySearch(cum, rnd.Float64()*sum)
			return topic[(at+shift)%list]
		})
		for _, d := range sets[i] {
			total += int64(weight[d])
		}
	}
	return sets, weight, total
}

func distinctBlocks(n int, draw func() int32) []int32 {
	out := make([]int32, 0, n)
	for len(out) < n {
		if d := draw(); !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	return out
}

func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{2_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("n=%d/k=15", n), func(b *testing.B) {
			sets, weight, total := generate(1, n, 15, false)
			benchmark(b, total, func() int64 {
				r, err := offline.Plan(context.Background(), sets, weight, offline.Options{})
				if err != nil {
					b.Fatal(err)
				}
				return r.Saved
			})
		})
	}
}

func BenchmarkPartition(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		for _, parts := range []int{1, 4, 10} {
			b.Run(fmt.Sprintf("n=%d/parts=%d", n, parts), func(b *testing.B) {
				skipLarge(b, n)
				if n/parts > 250_000 {
					b.Skip("too large for one whole")
				}
				sets, weight, total := generate(1, n, 15, false)
				benchmark(b, total, func() int64 {
					r, err := offline.Plan(context.Background(), sets, weight, offline.Options{Partition: n / parts})
					if err != nil {
						b.Fatal(err)
					}
					return r.Saved
				})
			})
		}
	}
}

// benchmark reports the share of tokens saved and how far the heap rose above what the input takes.
func benchmark(b *testing.B, total int64, plan func() int64) {
	runtime.GC()
	floor := heap()
	stop, done := make(chan bool), make(chan uint64)
	go func() {
		peak := uint64(0)
		for {
			select {
			case <-stop:
				done <- peak
				return
			case <-time.After(5 * time.Millisecond):
				peak = max(peak, heap())
			}
		}
	}()
	saved := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		saved = plan()
	}
	close(stop)
	b.ReportMetric(100*float64(saved)/float64(total), "%saved")
	b.ReportMetric((float64(max(<-done, floor))-float64(floor))/1e6, "peak-MB")
}

func heap() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() + s[1].Value.Uint64()
}

// skipLarge skips what takes minutes, unless RAGPILOT_BENCH_LARGE is 1.
func skipLarge(b *testing.B, n int) {
	if n > 100_000 && os.Getenv("RAGPILOT_BENCH_LARGE") != "1" {
		b.Skip("set RAGPILOT_BENCH_LARGE=1 for a million requests")
	}
}
