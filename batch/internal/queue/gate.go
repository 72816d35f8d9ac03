package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"
)

// pollInterval is how often a River queue is asked for jobs while it has none.
const pollInterval = 100 * time.Millisecond

// gate limits how many subtrees run in this process, over all batch jobs, and shares the lanes fairly between them. River limits each of
// its queues alone.
type gate struct {
	mu       sync.Mutex
	lanes    int
	closed   bool              // no queue may take anything: the worker stops, or its engine is away
	queues   map[string]*share // those that may take subtrees
	held     map[int64]string  // River jobs of this process, and their queues
	reserved map[string]int    // lanes of fetches that have not returned, by queue
	served   uint64            // grows with each lane that is given out
	lost     map[int64]bool    // River jobs that others have taken over while they ran here
}

// share is what the gate knows of a queue.
type share struct {
	served uint64    // when it was given a lane, as a number of gate.served
	asked  time.Time // the last time that it wanted lanes
	empty  bool      // its last fetch found less than it could have taken
}

func newGate(lanes int) *gate {
	return &gate{lanes: lanes, queues: map[string]*share{}, held: map[int64]string{}, reserved: map[string]int{}, lost: map[int64]bool{}}
}

// allow says whether a queue may take subtrees.
func (g *gate) allow(queue string, allowed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !allowed:
		delete(g.queues, queue)
	case g.queues[queue] == nil:
		g.queues[queue] = &share{}
	}
}

// count returns how many lanes a queue has. The caller holds the lock.
func (g *gate) count(queue string) int {
	n := g.reserved[queue]
	for _, of := range g.held {
		if of == queue {
			n++
		}
	}
	return n
}

// holds returns how many lanes a queue has.
func (g *gate) holds(queue string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count(queue)
}

// has reports whether this process has a River job.
func (g *gate) has(id int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.held[id]
	return ok
}

// shut closes or opens the gate for all queues.
func (g *gate) shut(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = closed
}

// reserve returns how many of the lanes that a queue wants it may have now. A queue that has fewer lanes goes first, and of two with as
// many the one that has waited longer. The lanes of a batch job that was paused stay its own until its calls in flight have ended.
func (g *gate) reserve(queue string, want int, now time.Time) (granted int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.queues[queue]
	if s == nil || g.closed {
		return 0
	}
	s.asked = now
	used := len(g.held)
	for _, n := range g.reserved {
		used += n
	}
	for ; granted < want && used < g.lanes && g.first(queue, now); granted++ {
		g.served++
		s.served = g.served
		g.reserved[queue]++
		used++
	}
	return granted
}

// first reports whether no other queue that wants a lane goes before this one. The caller holds the lock.
func (g *gate) first(queue string, now time.Time) bool {
	mine, lanes := g.queues[queue], g.count(queue)
	for name, other := range g.queues {
		if other == mine || other.empty || now.Sub(other.asked) >= 5*pollInterval {
			continue
		}
		if has := g.count(name); has < lanes || has == lanes && other.served < mine.served {
			return false
		}
	}
	return true
}

// took notes which River jobs a fetch has brought for the lanes that were reserved for it.
func (g *gate) took(queue string, reserved int, ids []int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reserved[queue] -= reserved; g.reserved[queue] == 0 {
		delete(g.reserved, queue)
	}
	for _, id := range ids {
		g.held[id] = queue
	}
	if s := g.queues[queue]; s != nil {
		s.empty = len(ids) < reserved
	}
}

// release gives back the lane of a River job.
func (g *gate) release(id int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.held, id)
}

// lose notes that another process has taken over a River job that runs here.
func (g *gate) lose(id int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lost[id] = true
}

// without returns IDs of River jobs, with 0, which no job has, in place of those of lost ones.
func (g *gate) without(ids []int64) []int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	ids = slices.Clone(ids)
	for i, id := range ids {
		if g.lost[id] {
			ids[i] = 0
		}
	}
	return ids
}

// forget drops lost River jobs: they have ended here.
func (g *gate) forget(ids []int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range ids {
		delete(g.lost, id)
	}
}

// gatedDriver is a River driver with two changes: queues take only what the gate allows, as River's own limits are per queue, and the state
// of a River job that another process has taken over is not written. It embeds the interface, so a new version of River works as long as
// these two methods stay.
type gatedDriver[TTx any] struct {
	riverdriver.Driver[TTx]
	gate *gate // nil: no limit
}

// GetExecutor implements riverdriver.Driver.
func (d gatedDriver[TTx]) GetExecutor() riverdriver.Executor {
	if d.gate == nil {
		return d.Driver.GetExecutor()
	}
	return gatedExecutor{d.Driver.GetExecutor(), d.gate}
}

type gatedExecutor struct {
	riverdriver.Executor
	gate *gate
}

// JobGetAvailable implements riverdriver.Executor.
func (e gatedExecutor) JobGetAvailable(
	ctx context.Context, params *riverdriver.JobGetAvailableParams,
) (*riverdriver.JobGetAvailableResult, error) {
	reserved := e.gate.reserve(params.Queue, params.MaxToLock, time.Now())
	if reserved == 0 {
		return &riverdriver.JobGetAvailableResult{}, nil
	}
	limited := *params
	limited.MaxToLock = reserved
	result, err := e.Executor.JobGetAvailable(ctx, &limited)
	var ids []int64
	if err == nil {
		for _, job := range result.Jobs {
			if result.DecodeErrors[job.ID] == nil { // else River does not work it
				ids = append(ids, job.ID)
			}
		}
	}
	e.gate.took(params.Queue, reserved, ids)
	return result, err
}

// JobSetStateIfRunningMany implements riverdriver.Executor.
func (e gatedExecutor) JobSetStateIfRunningMany(
	ctx context.Context, params *riverdriver.JobSetStateIfRunningManyParams,
) ([]*rivertype.JobRow, error) {
	own := *params
	own.ID = e.gate.without(params.ID)
	rows, err := e.Executor.JobSetStateIfRunningMany(ctx, &own)
	if err == nil {
		e.gate.forget(params.ID)
	}
	return rows, err
}
