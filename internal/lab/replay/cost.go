package replay

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/lab/figures"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// Cost is what planning costs: time and allocations of each plan, memory of each live context.
type Cost struct {
	Policy       string
	Live         int // contexts in the index while plans were timed
	Plans        int // timed one by one
	P50, P95     time.Duration
	P99, Max     time.Duration
	Allocs       float64 // for each plan
	AllocBytes   float64 // for each plan
	BytesPerLive float64 // heap that the pilot holds, over Live
	PerSecond    float64 // plans, one goroutine
	PerSecondAll float64 // plans, as many goroutines as processors, on the same index
	Bounded      int     // plans whose path search saw too many nodes of the index, of Plans
	HitBlocks    float64 // mean number of blocks expected in the cache
}

// FirstTurns makes the requests of a trace, as the pilot gets them: IDs, texts and token counts given, each a first turn.
func FirstTurns(trc []trace.Request, blocks *trace.Blocks, k int) []contextpilot.Request {
	counts := map[string]int{}
	reqs := make([]contextpilot.Request, len(trc))
	for i, q := range trc {
		docs := q.First(k).Docs
		reqs[i] = contextpilot.Request{ID: fmt.Sprint("r", i), Query: q.Query, Blocks: make([]contextpilot.Block, len(docs))}
		for j, id := range docs {
			text, _ := blocks.Text(id)
			n, ok := counts[id]
			if !ok {
				n = tokens.Count(trace.Doc(id, text))
				counts[id] = n
			}
			reqs[i].Blocks[j] = contextpilot.Block{ID: id, Text: text, Tokens: n}
		}
	}
	return reqs
}

// MeasureCost plans all requests but the last 3 × timed ones, so that they are live, times each of the next timed ones, and
// plans the others for the throughput. len(reqs) must be above 3 × timed.
func MeasureCost(cfg contextpilot.Config, reqs []contextpilot.Request, timed int) (Cost, error) {
	if len(reqs) <= 3*timed || timed < 1 {
		return Cost{}, fmt.Errorf("%d requests: want more than 3 × %d", len(reqs), timed)
	}
	cfg.MaxRequests = len(reqs) - 3*timed
	before := heap()
	pilot, err := contextpilot.New(cfg)
	if err != nil {
		return Cost{}, err
	}
	load, rest := reqs[:cfg.MaxRequests], reqs[cfg.MaxRequests:]
	for _, r := range load {
		pilot.Plan(r)
	}
	held := heap() - before
	res := Cost{Live: int(pilot.Stats().LiveRequests), Plans: timed}
	res.BytesPerLive = float64(held) / float64(max(res.Live, 1))
	res.each(pilot, rest[:timed])
	res.PerSecond = throughput(pilot, rest[timed:2*timed], 1)
	res.PerSecondAll = throughput(pilot, rest[2*timed:3*timed], runtime.GOMAXPROCS(0))
	return res, nil
}

// each times plans one by one.
func (r *Cost) each(pilot *contextpilot.Pilot, reqs []contextpilot.Request) {
	took := make([]time.Duration, len(reqs))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range reqs {
		t := time.Now()
		p := pilot.Plan(reqs[i])
		took[i] = time.Since(t)
		r.HitBlocks += float64(p.Prefix.Blocks) / float64(len(reqs))
		r.Policy = p.Policy
		if p.Why.Bounded {
			r.Bounded++
		}
	}
	runtime.ReadMemStats(&after)
	n := float64(len(reqs))
	r.Allocs = float64(after.Mallocs-before.Mallocs) / n
	r.AllocBytes = float64(after.TotalAlloc-before.TotalAlloc) / n
	slices.Sort(took)
	r.P50, r.P95, r.P99, r.Max = figures.Quantile(took, 0.5), figures.Quantile(took, 0.95), figures.Quantile(took, 0.99), took[len(took)-1]
}

// throughput plans the requests with n goroutines and returns plans a second.
func throughput(pilot *contextpilot.Pilot, reqs []contextpilot.Request, n int) float64 {
	var wg sync.WaitGroup
	began := time.Now()
	for g := range n {
		wg.Go(func() {
			for i := g; i < len(reqs); i += n {
				pilot.Plan(reqs[i])
			}
		})
	}
	wg.Wait()
	return float64(len(reqs)) / time.Since(began).Seconds()
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
