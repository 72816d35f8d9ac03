package load

import (
	"context"
	"slices"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

// FleetRun is a run on several servers.
type FleetRun struct {
	Run
	At      []int // the server of each of Run.Sent
	Servers int
}

// SimulateFleet runs the job in virtual time on several fresh servers. All have the same pilot, with an index for each.
// The Pilot of o is filled in; o is of [Routed] only.
func (j Job) SimulateFleet(ctx context.Context, servers []*sim.Server, routing Routing, o engines.RouterOptions) (FleetRun, error) {
	d, err := newDesk(j)
	if err != nil {
		return FleetRun{}, err
	}
	to, err := newSpread(d, len(servers), routing, o)
	if err != nil {
		return FleetRun{}, err
	}
	f := &fleet{spread: to, servers: servers, under: map[string]*sentTo{}}
	for i, s := range servers {
		defer s.Subscribe(to.sink(i))()
		s.OnFirst(func(id string) { to.begun(f.under[id]) })
	}
	run, err := j.virtually(ctx, f)
	return FleetRun{Run: run, At: to.at, Servers: len(servers)}, err
}

// fleet plans requests and takes them to servers in virtual time.
type fleet struct {
	spread  *spread
	servers []*sim.Server
	under   map[string]*sentTo
}

func (f *fleet) submit(at time.Duration, q trace.Request) (string, error) {
	req, to, err := f.spread.plan(q)
	if err != nil {
		return "", err
	}
	f.under[req.ID] = to
	f.servers[to.server].Submit(at, req)
	return req.ID, nil
}

// earliest returns the server at which something happens first, or -1.
func (f *fleet) earliest() (server int, at time.Duration) {
	server = -1
	for i, s := range f.servers {
		if t, ok := s.Next(); ok && (server < 0 || t < at) {
			server, at = i, t
		}
	}
	return server, at
}

func (f *fleet) next() (time.Duration, bool) {
	i, at := f.earliest()
	return at, i >= 0
}

func (f *fleet) step() []sim.Served {
	i, _ := f.earliest()
	return f.servers[i].Step()
}

func (f *fleet) answered(q trace.Request, s sim.Served) {
	f.spread.answered(f.under[s.ID], q, s.Usage)
	delete(f.under, s.ID)
}

// Prefill returns the prompt tokens that were computed.
func (r FleetRun) Prefill() int {
	prompt, cached := r.promptTokens()
	return prompt - cached
}

// Imbalance returns the largest share that one server had of the prefill tokens of any n requests in a row, as a
// multiple of the mean; of fewer than n requests, of all.
func (r FleetRun) Imbalance(n int) float64 {
	n = min(n, len(r.Sent))
	sums, total, worst := make([]int, r.Servers), 0, 0.0
	computed := func(i int) int { return r.Sent[i].Usage.PromptTokens - r.Sent[i].Usage.CachedTokens }
	for i := range r.Sent {
		sums[r.At[i]] += computed(i)
		total += computed(i)
		if i >= n {
			sums[r.At[i-n]] -= computed(i - n)
			total -= computed(i - n)
		}
		if i >= n-1 && total > 0 {
			worst = max(worst, float64(slices.Max(sums))*float64(r.Servers)/float64(total))
		}
	}
	return worst
}
