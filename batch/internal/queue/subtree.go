package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/riverqueue/river"
)

// Timeout implements river.Worker.
func (w *worker) Timeout(*river.Job[subtreeArgs]) time.Duration { return -1 }

// NextRetry implements river.Worker. Up to five seconds River makes a job available itself; later ones need its leader.
func (w *worker) NextRetry(job *river.Job[subtreeArgs]) time.Time {
	return time.Now().Add(min(time.Duration(job.Attempt)*time.Second, 4*time.Second))
}

// Work implements river.Worker.
func (w *worker) Work(ctx context.Context, job *river.Job[subtreeArgs]) error {
	w.await(ctx, job)
	release := sync.OnceFunc(func() { w.gate.release(job.ID) })
	defer release()
	found, err := w.q.byID(ctx, job.Args.Job)
	switch {
	case errors.Is(err, ErrNotFound):
		return river.JobCancel(err)
	case err != nil: // the database is away
		return errors.Join(err, river.JobSnooze(time.Second))
	case found.State.Ended():
		return river.JobCancel(fmt.Errorf("the batch job is %s", found.State))
	}
	stop := make(chan struct{})
	if found.State != Running || !w.started(job.ID, &running{job: found.ID, stop: sync.OnceFunc(func() { close(stop) })}) {
		return river.JobSnooze(0)
	}
	defer func() {
		release() // first: a later run of the same River job waits for the end of this one, and has the lane then
		w.ended(job.ID)
	}()
	requests, err := w.q.open(ctx, job.Args)
	alone := false
	if err == nil {
		alone, err = w.q.deadly(ctx, job.Args)
	}
	if err != nil {
		return errors.Join(err, river.JobSnooze(time.Second))
	}
	run := newRun(w.writer, found, job.Args.Subtree, requests, stop)
	switch {
	case len(requests) == 0:
	case alone:
		err = w.oneByOne(ctx, job, run)
	default:
		err = run.do(ctx, w.opts.Do, requests)
	}
	return w.result(ctx, job, run, err)
}

// result returns what River makes of a subtree after Do.
func (w *worker) result(ctx context.Context, job *river.Job[subtreeArgs], run *run, err error) error {
	left := run.left()
	stopped := false
	select {
	case <-run.stop:
		stopped = true
	default:
	}
	switch {
	case len(left) == 0:
		if err := w.q.finish(ctx, job.Args.Job); err != nil { // it is looked at again later
			w.q.log.WarnContext(ctx, "a batch job cannot be ended yet", "job", run.job.Name, "error", err)
		}
		return nil
	case stopped || ctx.Err() != nil:
		if found, err := w.q.byID(context.WithoutCancel(ctx), job.Args.Job); err == nil && found.State.Ended() {
			return river.JobCancel(fmt.Errorf("the batch job is %s", found.State))
		}
		return river.JobSnooze(0)
	case errors.Is(err, errBusy):
		return river.JobSnooze(time.Second)
	case errors.Is(err, ErrAway):
		w.q.log.WarnContext(ctx, "the engine is away", "job", run.job.Name, "subtree", run.number, "error", err)
		w.setAway(time.Now())
		return river.JobSnooze(awayInterval)
	case broken(err):
		return w.pauseBroken(ctx, run, err)
	case err == nil:
		err = fmt.Errorf("%d requests were left without an answer", len(left))
	}
	w.q.log.WarnContext(ctx, "a subtree has failed", "job", run.job.Name, "subtree", run.number, "attempt", job.Attempt, "error", err)
	if job.Attempt < job.MaxAttempts {
		return err
	}
	for _, request := range left {
		failure := Failure{Code: "attempts", Message: err.Error()}
		if err := run.store(Answer{Seq: request.Seq, Failure: failure}); err != nil {
			return errors.Join(err, river.JobSnooze(time.Second))
		}
	}
	if err := w.q.finish(ctx, job.Args.Job); err != nil {
		w.q.log.WarnContext(ctx, "a batch job cannot be ended yet", "job", run.job.Name, "error", err)
	}
	return err // River discards the job, and shows why
}

// pauseBroken pauses a job whose answers cannot be stored. Asking again would only cost.
func (w *worker) pauseBroken(ctx context.Context, run *run, why error) error {
	err := w.q.Pause(ctx, run.job.ID, fmt.Sprintf("answers cannot be stored: %v", why))
	if err != nil && !errors.Is(err, ErrState) {
		w.q.log.WarnContext(ctx, "answers of a job cannot be stored", "job", run.job.Name, "error", errors.Join(why, err))
	}
	return river.JobSnooze(time.Second)
}

// started notes what runs. It returns false if the worker stops, or another subtree runs alone.
func (w *worker) started(id int64, r *running) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping || w.alone != 0 {
		return false
	}
	w.running[id] = r
	return true
}

// await waits until an earlier run of the same River job has ended: this process was taken for dead, and has taken the job again itself.
func (w *worker) await(ctx context.Context, job *river.Job[subtreeArgs]) {
	for waited := false; ctx.Err() == nil; waited = true {
		w.mu.Lock()
		r := w.running[job.ID]
		w.mu.Unlock()
		if r == nil {
			if waited {
				w.gate.took(job.Queue, 0, []int64{job.ID}) // the earlier run has given back the lane of both
			}
			return
		}
		w.lose(job.ID, r)
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (w *worker) ended(id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, id)
}

// run is one call of Do.
type run struct {
	job      Job
	number   int
	requests []Request
	writer   *writer
	stop     <-chan struct{}

	mu   sync.Mutex
	open map[int]int // guarded by mu; requests without an answer, and how many rows each has
}

func newRun(writer *writer, job Job, number int, requests []Request, stop <-chan struct{}) *run {
	r := &run{job: job, number: number, requests: requests, writer: writer, stop: stop, open: map[int]int{}}
	for _, request := range requests {
		r.open[request.Seq] = len(request.Rows)
	}
	return r
}

// do calls f with some of the requests. A panic is an error.
func (r *run) do(ctx context.Context, f func(context.Context, Subtree) error, requests []Request) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
		}
	}()
	return f(ctx, Subtree{
		Job: r.job, Number: r.number, Requests: requests, Stop: r.stop,
		Store: func(_ context.Context, a Answer) error { return r.store(a) },
	})
}

func (r *run) store(a Answer) error {
	first, last := r.requests[0].Seq, r.requests[len(r.requests)-1].Seq
	if a.Seq < first || a.Seq > last {
		return fmt.Errorf("answer with Seq = %d in a subtree of %d to %d", a.Seq, first, last)
	}
	r.mu.Lock()
	rows, open := r.open[a.Seq]
	r.mu.Unlock()
	if !open {
		return nil // it has an answer
	}
	if err := r.writer.store(r.job.ID, rows, a); err != nil {
		return err
	}
	r.mu.Lock()
	delete(r.open, a.Seq)
	r.mu.Unlock()
	return nil
}

// left returns the requests without an answer.
func (r *run) left() (left []Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, request := range r.requests {
		if _, ok := r.open[request.Seq]; ok {
			left = append(left, request)
		}
	}
	return left
}
