package load

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/base/queue"
	"github.com/ragpilot/ragpilot/internal/lab/replay"
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
	to, err := newSpread(j, len(servers), routing, o)
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
	talks   [][]trace.Request // conversations
	under   map[string]*sentTo
}

func (f *fleet) conversations() int      { return len(f.talks) }
func (f *fleet) turns(i int) int         { return len(f.talks[i]) }
func (f *fleet) name(i, turn int) string { return f.talks[i][turn].ID }

func (f *fleet) submit(at time.Duration, conversation, turn int) (string, error) {
	q := f.talks[conversation][turn]
	if _, twice := f.under[replay.RequestID(q)]; twice {
		return "", fmt.Errorf("request %s is under way already", q.ID)
	}
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

func (f *fleet) answered(conversation, turn int, s sim.Served) {
	f.spread.answered(f.under[s.ID], f.talks[conversation][turn], s.Usage)
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

// Simulate runs the job in virtual time on a fresh server. A request is planned at the moment of its arrival, with
// what the server's cache has reported until then.
func (j Job) Simulate(ctx context.Context, server *sim.Server) (Run, error) {
	run, err := j.SimulateFleet(ctx, []*sim.Server{server}, RoundRobin, engines.RouterOptions{})
	return run.Run, err
}

// virtually runs the job in virtual time on servers.
func (j Job) virtually(ctx context.Context, to *fleet) (Run, error) {
	to.talks = j.conversations()
	v := newVirtual(to, j, len(j.Trace))
	if err := v.loop(ctx); err != nil {
		return Run{}, err
	}
	for _, s := range to.servers {
		v.run.Transfers.Add(s.Transfers())
		v.run.Work.Add(s.Work())
	}
	return v.run, v.run.check(len(j.Trace))
}

// arrival is a turn of a conversation that is going to be sent.
type arrival struct {
	at           time.Duration
	number       int // of the arrival
	conversation int // next: the next one that has not begun
	turn         int
	sent         int // its place in Run.Sent, once sent
	place        int // on the calendar
}

const next = -1

// newCalendar orders arrivals by time, then in the order in which they were made.
func newCalendar() *queue.Queue[*arrival] {
	return queue.New(func(a, b *arrival) bool {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.number, b.number)) < 0
	}, func(a *arrival) *int { return &a.place })
}

// requests are what a run in virtual time sends, and what answers them.
type requests interface {
	conversations() int
	turns(conversation int) int
	name(conversation, turn int) string
	submit(at time.Duration, conversation, turn int) (id string, err error)
	answered(conversation, turn int, s sim.Served)
	next() (time.Duration, bool) // see [sim.Server.Next]
	step() []sim.Served
}

// virtual is one run in virtual time.
type virtual struct {
	job      Job // arrivals, seed, thinking and limit
	to       requests
	calendar *queue.Queue[*arrival]
	held     []*arrival          // due, but as many requests are under way as may be
	arrivals int                 // made
	begun    int                 // conversations
	under    map[string]*arrival // requests under way, by ID
	run      Run
}

func newVirtual(to requests, j Job, requests int) *virtual {
	return &virtual{
		job: j, to: to, calendar: newCalendar(), under: map[string]*arrival{},
		run: Run{Policy: j.Settings.Policy, Arrivals: j.Arrivals, Seed: j.Seed, Sent: make([]Sent, 0, requests)},
	}
}

func (v *virtual) loop(ctx context.Context) error {
	if v.job.Arrivals.Kind == Closed {
		for range v.job.Arrivals.Size {
			v.note(arrival{conversation: next})
		}
	}
	for _, at := range v.job.Arrivals.Starts(v.to.conversations(), v.job.Seed) {
		v.note(arrival{at: at, conversation: next})
	}
	for {
		at, working := v.to.next()
		switch {
		case v.calendar.Len() > 0 && (!working || v.calendar.Top().at <= at):
			if err := ctx.Err(); err != nil {
				return err
			}
			due := v.calendar.Top()
			v.calendar.Remove(due)
			if v.full() {
				v.held = append(v.held, due)
			} else if err := v.send(due.at, due); err != nil {
				return err
			}
		case working:
			if err := ctx.Err(); err != nil {
				return err
			}
			for _, s := range v.to.step() {
				v.answered(s)
				if err := v.sendHeld(s.Done); err != nil {
					return err
				}
			}
		default:
			return nil
		}
	}
}

// note puts an arrival on the calendar.
func (v *virtual) note(a arrival) {
	a.number = v.arrivals
	v.arrivals++
	v.calendar.Push(&a)
}

func (v *virtual) full() bool { return v.job.InFlight > 0 && len(v.under) >= v.job.InFlight }

// sendHeld sends what waits for its place among the requests under way.
func (v *virtual) sendHeld(now time.Duration) error {
	for len(v.held) > 0 && !v.full() {
		a := v.held[0]
		v.held = slices.Delete(v.held, 0, 1)
		if err := v.send(now, a); err != nil {
			return err
		}
	}
	return nil
}

func (v *virtual) send(now time.Duration, a *arrival) error {
	if a.conversation == next {
		if v.begun == v.to.conversations() {
			return nil // a user who has nothing left to ask
		}
		a.conversation = v.begun
		v.begun++
	}
	id, err := v.to.submit(now, a.conversation, a.turn)
	if err != nil {
		return err
	}
	a.sent = len(v.run.Sent)
	v.run.Sent = append(v.run.Sent, Sent{ID: v.to.name(a.conversation, a.turn), Arrived: a.at})
	v.under[id] = a
	v.run.Peak = max(v.run.Peak, len(v.under))
	return nil
}

func (v *virtual) answered(s sim.Served) {
	a := v.under[s.ID]
	delete(v.under, s.ID)
	sent := &v.run.Sent[a.sent]
	sent.TTFT, sent.Total, sent.Usage = s.First-a.at, s.Done-a.at, s.Usage
	v.to.answered(a.conversation, a.turn, s)
	at := s.Done + v.job.thinking(a.conversation, a.turn+1)
	if a.turn+1 < v.to.turns(a.conversation) {
		v.note(arrival{at: at, conversation: a.conversation, turn: a.turn + 1})
	} else if v.job.Arrivals.Kind == Closed {
		v.note(arrival{at: at, conversation: next})
	}
}
