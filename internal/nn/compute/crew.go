package compute

import (
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
