package queue_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/batch/internal/queue"
)

// Whatever is done to jobs, and however workers come and go, in any order: each request is answered once, a job that is paused or has
// ended starts nothing until it is reopened, and one that was not cancelled is finished in the end.
func TestStates(t *testing.T) {
	t.Parallel()
	q, round := open(t, filepath.Join(t.TempDir(), "jobs.db")), 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		m := &model{t: t, rt: rt, q: q, e: newEngine(), round: round}
		actions := map[string]func(*rapid.T){
			"create": m.create, "pause": m.pause, "resume": m.resume, "cancel": m.cancel, "reopen": m.reopen, "start": m.start, "stop": m.stop,
		}
		names := []string{"create", "start", "pause", "resume", "cancel", "reopen", "stop", "create", "start", "start", "reopen"}
		m.create(rt)
		for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 4, 10).Draw(rt, "actions") {
			actions[name](rt)
			time.Sleep(time.Duration(rapid.IntRange(0, 40).Draw(rt, "milliseconds")) * time.Millisecond)
		}
		m.end()
	})
}

// A worker may pause a job that it cannot store answers of, while somebody resumes it: what counts as running gives out its subtrees.
func TestPauseBesideResume(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		q, e := open(t, dsn), newEngine()
		job := create(t, q, "beside", requests(1, 10))
		stop := work(t, q, queue.WorkerOptions{Do: func(context.Context, queue.Subtree) error { return queue.ErrAway }})
		eventually(t, "River's queue", func() bool {
			names, err := queue.QueryText(t.Context(), q, "SELECT name FROM river_queue WHERE name = 'batch-1'")
			return err == nil && len(names) == 1
		})
		stop()
		for round := range 100 {
			paused := make(chan error, 1)
			go func() { paused <- q.Pause(t.Context(), job.ID, "") }()
			resumed := q.Resume(t.Context(), job.ID)
			if err := errors.Join(resumed, <-paused); err != nil {
				t.Fatal(err)
			}
			found, err := q.Job(t.Context(), "beside")
			if err != nil {
				t.Fatal(err)
			}
			closed, err := queue.QueryText(t.Context(), q, "SELECT name FROM river_queue WHERE name = 'batch-1' AND paused_at IS NOT NULL")
			if err != nil {
				t.Fatal(err)
			}
			if found.State == queue.Running && len(closed) > 0 {
				t.Fatalf("round %d: the job is running, and its queue is paused", round)
			}
		}
		if err := q.Resume(t.Context(), job.ID); err != nil {
			t.Fatal(err)
		}
		work(t, q, queue.WorkerOptions{Do: e.do})
		wait(t, q, job)
		complete(t, q, job, 10)
	})
}

type model struct {
	t       *testing.T
	rt      *rapid.T
	q       *queue.Queue
	e       *engine
	round   int
	jobs    []queue.Job
	states  []queue.State // what each job is at least: Finished is not noted
	workers []func()
}

func (m *model) create(rt *rapid.T) {
	name := fmt.Sprintf("job %d of round %d", len(m.jobs), m.round)
	job := create(m.t, m.q, name, requests(rapid.IntRange(1, 4).Draw(rt, "subtrees"), rapid.IntRange(1, 8).Draw(rt, "requests")))
	m.jobs, m.states = append(m.jobs, job), append(m.states, queue.Running)
}

// move changes a job, which the queue refuses if the job has ended.
func (m *model) move(rt *rapid.T, to queue.State, f func(job int64) error) {
	i := rapid.IntRange(0, len(m.jobs)-1).Draw(rt, "job")
	err := f(m.jobs[i].ID)
	now, found := m.q.Job(m.t.Context(), fmt.Sprint(m.jobs[i].ID))
	if found != nil {
		rt.Fatal(found)
	}
	switch {
	case err == nil && m.states[i] == queue.Cancelled && to != queue.Cancelled:
		rt.Fatalf("a cancelled job is %s", to)
	case err == nil:
		m.states[i] = to
		if now.State != to && now.State != queue.Finished {
			rt.Fatalf("a job is %s, want %s", now.State, to)
		}
	case !errors.Is(err, queue.ErrState) || !now.State.Ended():
		rt.Fatalf("%s is refused to a job that is %s: %v", to, now.State, err)
	}
}

func (m *model) pause(rt *rapid.T) {
	m.move(rt, queue.Paused, func(job int64) error { return m.q.Pause(m.t.Context(), job, "") })
}

func (m *model) resume(rt *rapid.T) {
	m.move(rt, queue.Running, func(job int64) error { return m.q.Resume(m.t.Context(), job) })
}

func (m *model) cancel(rt *rapid.T) {
	m.move(rt, queue.Cancelled, func(job int64) error { return m.q.Cancel(m.t.Context(), job, "") })
}

// reopen lets a job that has ended go on, and is refused for one that has not.
func (m *model) reopen(rt *rapid.T) {
	i := rapid.IntRange(0, len(m.jobs)-1).Draw(rt, "job")
	err := m.q.Reopen(m.t.Context(), m.jobs[i].ID)
	now, found := m.q.Job(m.t.Context(), fmt.Sprint(m.jobs[i].ID))
	switch {
	case found != nil:
		rt.Fatal(found)
	case err == nil:
		if m.states[i] = queue.Running; now.State != queue.Running && now.State != queue.Finished {
			rt.Fatalf("a reopened job is %s", now.State)
		}
	case !errors.Is(err, queue.ErrState) || m.states[i] == queue.Cancelled:
		rt.Fatalf("a job that is %s is not reopened: %v", now.State, err)
	}
}

// start starts a worker. It works with an engine that is away now and then, or fails.
func (m *model) start(rt *rapid.T) {
	if len(m.workers) == 2 {
		return
	}
	fails := rapid.SampledFrom([]error{nil, nil, errors.New("no answer"), queue.ErrAway}).Draw(rt, "failure")
	m.workers = append(m.workers, work(m.t, m.q, queue.WorkerOptions{
		Lanes: rapid.IntRange(1, 3).Draw(rt, "lanes"), Grace: 50 * time.Millisecond,
		Do: func(ctx context.Context, s queue.Subtree) error {
			for i := range s.Requests {
				select {
				case <-s.Stop:
					return nil
				case <-time.After(time.Millisecond):
				}
				if fails != nil && i == 2 { // it has made some progress
					return fails
				}
				if err := s.Store(ctx, m.e.answer(&s, &s.Requests[i])); err != nil {
					return err
				}
			}
			return nil
		},
	}))
}

func (m *model) stop(rt *rapid.T) {
	if len(m.workers) > 0 {
		i := rapid.IntRange(0, len(m.workers)-1).Draw(rt, "worker")
		m.workers[i]()
		m.workers = append(m.workers[:i], m.workers[i+1:]...)
	}
}

// end lets all go on and checks what has become of the jobs.
func (m *model) end() {
	for _, stop := range m.workers {
		stop()
	}
	for i, job := range m.jobs {
		if m.states[i] == queue.Paused {
			if err := m.q.Resume(m.t.Context(), job.ID); err != nil && !errors.Is(err, queue.ErrState) {
				m.rt.Fatal(err)
			}
		}
	}
	stop := work(m.t, m.q, queue.WorkerOptions{Lanes: 4, Do: m.e.do})
	defer stop()
	for i, job := range m.jobs {
		if m.states[i] != queue.Cancelled {
			wait(m.t, m.q, job)
			complete(m.t, m.q, job, job.Requests)
		}
		for seq := range job.Requests {
			if n := m.e.of(job.ID, seq); n > 1 {
				m.rt.Errorf("request %d of job %d was called %d times", seq, job.ID, n)
			}
		}
	}
}
