package load

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/base/pause"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

// Drive runs the job in real time on an engine, whose cache should know nothing of the trace, or Job.Salt be set.
// Times count from the moment at which a request was due, so one that is late because this program is slow counts as
// waiting too. The first request that fails ends the run. All goroutines have ended when Drive returns; if ctx ends
// early, its cause is returned.
func (j Job) Drive(ctx context.Context, engine engines.Engine) (Run, error) {
	run, err := j.DriveFleet(ctx, []engines.Engine{engine}, RoundRobin, engines.RouterOptions{})
	return run.Run, err
}

// DriveFleet is [Job.Drive] on several engines. The Pilot of o is filled in; o is of [Routed] only.
func (j Job) DriveFleet(ctx context.Context, list []engines.Engine, routing Routing, o engines.RouterOptions) (FleetRun, error) {
	to, err := newSpread(j, len(list), routing, o)
	if err != nil {
		return FleetRun{}, err
	}
	for i, e := range list {
		defer e.Subscribe(to.sink(i))()
	}
	run, err := j.drive(ctx, list, to)
	return FleetRun{Run: run, At: to.at, Servers: len(list)}, err
}

func (j Job) drive(ctx context.Context, list []engines.Engine, to *spread) (Run, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r := &driver{
		job: j, engines: list, conversations: j.conversations(), start: time.Now(), stop: stop,
		spread: to, run: Run{Policy: j.Settings.Policy, Arrivals: j.Arrivals, Seed: j.Seed, Sent: make([]Sent, 0, len(j.Trace))},
	}
	if j.Arrivals.Kind == Closed {
		for range min(j.Arrivals.Size, len(r.conversations)) {
			r.group.Go(func() { r.user(ctx) })
		}
	} else {
		r.open(ctx)
	}
	r.group.Wait()
	if ctx.Err() != nil {
		return Run{}, context.Cause(ctx)
	}
	return r.run, r.run.check(len(j.Trace))
}

// driver is one run in real time.
type driver struct {
	job           Job
	engines       []engines.Engine
	conversations [][]trace.Request
	start         time.Time
	stop          context.CancelCauseFunc
	group         sync.WaitGroup

	mu     sync.Mutex
	spread *spread // guarded by mu
	run    Run     // guarded by mu
	begun  int     // guarded by mu; conversations
	under  int     // guarded by mu; requests under way
}

// open begins conversations by the clock. It plans their first turns itself, so that they are planned in trace order.
func (r *driver) open(ctx context.Context) {
	for i, due := range r.job.Arrivals.Starts(len(r.conversations), r.job.Seed) {
		if !r.wait(ctx, due) {
			return
		}
		first := r.plan(i, 0, due)
		r.group.Go(func() { r.talk(ctx, i, first) })
	}
}

// user has one conversation after the other.
func (r *driver) user(ctx context.Context) {
	for due := time.Duration(0); r.wait(ctx, due); {
		r.mu.Lock()
		i := r.begun
		r.begun++
		r.mu.Unlock()
		if i >= len(r.conversations) {
			return
		}
		r.talk(ctx, i, r.plan(i, 0, due))
		due = r.now() + r.job.thinking(i, len(r.conversations[i]))
	}
}

// ticket is a planned request.
type ticket struct {
	req   engines.Request
	to    *sentTo
	due   time.Duration
	place int // in Run.Sent
	err   error
}

// talk sends a conversation, turn by turn.
func (r *driver) talk(ctx context.Context, i int, t ticket) {
	for turn := 0; ; {
		if err := r.send(ctx, r.conversations[i][turn], t); err != nil {
			r.stop(fmt.Errorf("request %s of policy %s: %w", r.conversations[i][turn].ID, r.job.Settings.Policy, err))
			return
		}
		if turn++; turn == len(r.conversations[i]) {
			return
		}
		due := r.now() + r.job.thinking(i, turn)
		if !r.wait(ctx, due) {
			return
		}
		t = r.plan(i, turn, due)
	}
}

func (r *driver) plan(conversation, turn int, due time.Duration) ticket {
	q := r.conversations[conversation][turn]
	r.mu.Lock()
	defer r.mu.Unlock()
	req, to, err := r.spread.plan(q)
	r.run.Sent = append(r.run.Sent, Sent{ID: q.ID, Arrived: due})
	r.under++
	r.run.Peak = max(r.run.Peak, r.under)
	return ticket{req: req, to: to, due: due, place: len(r.run.Sent) - 1, err: err}
}

func (r *driver) send(ctx context.Context, q trace.Request, t ticket) error {
	if t.err != nil {
		return t.err
	}
	called := r.now()
	resp, err := r.engines[t.to.server].Generate(ctx, t.req, func(string) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.spread.begun(t.to)
		return nil
	})
	if err != nil {
		return err
	}
	late := called - t.due
	r.mu.Lock()
	defer r.mu.Unlock()
	r.under--
	sent := &r.run.Sent[t.place]
	sent.TTFT, sent.Total, sent.Usage = late+resp.TTFT, late+resp.Total, resp.Usage
	r.spread.answered(t.to, q, resp.Usage)
	return nil
}

func (r *driver) now() time.Duration { return time.Since(r.start) }

// wait waits until a time of the run, and reports false if ctx ended first.
func (r *driver) wait(ctx context.Context, until time.Duration) bool {
	return pause.For(ctx, until-r.now())
}
