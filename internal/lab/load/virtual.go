package load

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/replay"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/queue"
)

// Simulate runs the job in virtual time on a fresh server. A request is planned at the moment of its arrival, with
// what the server's cache has reported until then.
func (j Job) Simulate(ctx context.Context, server *sim.Server) (Run, error) {
	run, err := j.SimulateFleet(ctx, []*sim.Server{server}, RoundRobin, engines.RouterOptions{})
	return run.Run, err
}

// virtually runs the job in virtual time on servers.
func (j Job) virtually(ctx context.Context, to *fleet) (Run, error) {
	v := virtual{
		job: j, to: to, conversations: j.conversations(), calendar: newCalendar(), under: map[string]*arrival{},
		run: Run{Policy: j.Settings.Policy, Arrivals: j.Arrivals, Seed: j.Seed, Sent: make([]Sent, 0, len(j.Trace))},
	}
	if err := v.loop(ctx); err != nil {
		return Run{}, err
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

// virtual is one run in virtual time.
type virtual struct {
	job           Job
	to            *fleet
	conversations [][]trace.Request
	calendar      *queue.Queue[*arrival]
	arrivals      int                 // made
	begun         int                 // conversations
	under         map[string]*arrival // requests under way, by ID
	run           Run
}

func (v *virtual) loop(ctx context.Context) error {
	if v.job.Arrivals.Kind == Closed {
		for range v.job.Arrivals.Size {
			v.note(arrival{conversation: next})
		}
	}
	for _, at := range v.job.Arrivals.Starts(len(v.conversations), v.job.Seed) {
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
			if err := v.send(due); err != nil {
				return err
			}
		case working:
			for _, s := range v.to.step() {
				v.answered(s)
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

func (v *virtual) send(a *arrival) error {
	if a.conversation == next {
		if v.begun == len(v.conversations) {
			return nil // a user who has nothing left to ask
		}
		a.conversation = v.begun
		v.begun++
	}
	q := v.conversations[a.conversation][a.turn]
	if _, twice := v.under[replay.RequestID(q)]; twice {
		return fmt.Errorf("request %s is under way already", q.ID)
	}
	id, err := v.to.submit(a.at, q)
	if err != nil {
		return err
	}
	a.sent = len(v.run.Sent)
	v.run.Sent = append(v.run.Sent, Sent{ID: q.ID, Arrived: a.at})
	v.under[id] = a
	v.run.Peak = max(v.run.Peak, len(v.under))
	return nil
}

func (v *virtual) answered(s sim.Served) {
	a := v.under[s.ID]
	delete(v.under, s.ID)
	talk := v.conversations[a.conversation]
	sent := &v.run.Sent[a.sent]
	sent.TTFT, sent.Total, sent.Usage = s.First-a.at, s.Done-a.at, s.Usage
	v.to.answered(talk[a.turn], s)
	at := s.Done + v.job.thinking(a.conversation, a.turn+1)
	if a.turn+1 < len(talk) {
		v.note(arrival{at: at, conversation: a.conversation, turn: a.turn + 1})
	} else if v.job.Arrivals.Kind == Closed {
		v.note(arrival{at: at, conversation: next})
	}
}
