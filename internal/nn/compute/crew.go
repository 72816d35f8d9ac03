package compute

import (
	"math"
	"sync"
	"sync/atomic"
)

// Crew is a number of threads that share work. It starts no goroutine that outlives a call, and may be used by several
// callers at once.
type Crew struct{ threads int }

// NewCrew returns a crew of at least one thread.
func NewCrew(threads int) *Crew { return &Crew{threads: max(threads, 1)} }

// Threads returns their number.
func (c *Crew) Threads() int { return c.threads }

// worth is how many multiplications make another goroutine worth its start.
const worth = 100_000

// Each calls f for parts of [0, n) that cover it, on several threads if the work, in multiplications, is worth it.
func (c *Crew) Each(n, work int, f func(from, to int)) {
	threads := min(c.threads, n, 1+work/worth)
	if threads <= 1 {
		f(0, n)
		return
	}
	// Threads that are late take fewer parts.
	parts := min(n, 16*threads)
	var next atomic.Int64
	run := func() {
		for {
			i := int(next.Add(1)) - 1
			if i >= parts {
				return
			}
			f(i*n/parts, (i+1)*n/parts)
		}
	}
	var group sync.WaitGroup
	for range threads - 1 {
		group.Go(run)
	}
	run()
	group.Wait()
}

// Norm writes each row of x, divided by its root mean square and multiplied by weights, to out (B. Zhang, R. Sennrich, Root Mean
// Square Layer Normalization, 2019). Rows have len(weights) elements, a multiple of 8. out may be x.
func (c *Crew) Norm(out, x, weights []float32, epsilon float32) {
	n := len(weights)
	c.Each(len(x)/n, len(x), func(from, to int) {
		for i := from * n; i < to*n; i += n {
			mean := active.dot(x[i:i+n], x[i:i+n]) / float32(n)
			active.scale(out[i:i+n], x[i:i+n], weights, float32(1/math.Sqrt(float64(mean+epsilon))))
		}
	})
}

// Gate computes silu(g)·u into g. The length is a multiple of 8.
func (c *Crew) Gate(g, u []float32) {
	c.Each(len(g)/lanes, len(g), func(from, to int) { active.gate(g[from*lanes:to*lanes], u[from*lanes:to*lanes]) })
}

// Add adds y to x.
func Add(x, y []float32) {
	for i, v := range y {
		x[i] += v
	}
}

// AddRow adds bias to each row of x.
func AddRow(x, bias []float32) {
	for ; len(x) > 0; x = x[len(bias):] {
		Add(x[:len(bias)], bias)
	}
}
