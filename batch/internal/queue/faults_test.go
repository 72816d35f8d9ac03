package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/batch/internal/queue"
)

// What Do cannot do is stored as failed, with the reason, and nothing else is.
func TestDoFails(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, dsn string) {
		q, e := open(t, dsn), newEngine()
		var tries atomic.Int64
		job := create(t, q, "fails", requests(3, 4))
		work(t, q, queue.WorkerOptions{Lanes: 3, Do: func(ctx context.Context, s queue.Subtree) error {
			if s.Number != 1 {
				return e.do(ctx, s)
			}
			if tries.Add(1) == 1 {
				return s.Store(ctx, e.answer(&s, &s.Requests[0])) // and leaves the others
			}
			if s.Requests[0].Seq != 5 {
				t.Errorf("request %d comes again", s.Requests[0].Seq)
			}
			panic("no such model")
		}})
		wait(t, q, job)
		p, err := q.Progress(t.Context(), job.ID)
		if err != nil || p.Done != 9 || p.Failed != 3 || p.RowsFailed != 3 || tries.Load() != 5 {
			t.Errorf("%+v, %v after %d tries", p, err, tries.Load())
		}
		for a, err := range q.Answers(t.Context(), job.ID) {
			if failed := a.Seq > 4 && a.Seq < 8; err != nil || failed != (a.Failure.Code == "attempts") {
				t.Errorf("%+v, %v", a, err)
			}
		}
	})
}

// While an engine is away its worker takes nothing, others take over, and no attempt is used up.
func TestEngineAway(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, dsn string) {
		q, e := open(t, dsn), newEngine()
		var away atomic.Bool
		var refused, probed atomic.Int64
		away.Store(true)
		job := create(t, q, "away", requests(30, 4))
		work(t, q, queue.WorkerOptions{
			Lanes: 2,
			Do: func(ctx context.Context, s queue.Subtree) error {
				if away.Load() {
					refused.Add(1)
					return fmt.Errorf("connection refused: %w", queue.ErrAway)
				}
				return e.do(ctx, s)
			},
			Probe: func(context.Context) error {
				if away.Load() {
					probed.Add(1)
					return errors.New("connection refused")
				}
				return nil
			},
		})
		eventually(t, "a third refused probe", func() bool { return probed.Load() > 2 })
		if n := refused.Load(); n > 2 {
			t.Errorf("%d subtrees were taken while the engine was away, want those of two lanes", n)
		}
		stop := work(t, open(t, dsn), queue.WorkerOptions{Do: e.do})
		eventually(t, "that another worker takes over", func() bool { return e.count() >= 8 })
		stop()
		away.Store(false)
		wait(t, q, job)
		complete(t, q, job, 120)
	})
}

// Two jobs share the lanes: neither waits for the other.
func TestFair(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		q, e := open(t, dsn), newEngine()
		long := create(t, q, "long", requests(60, 5))
		var running sync.Map
		both := make(chan struct{}) // closed when there are both jobs
		work(t, q, queue.WorkerOptions{Lanes: 4, Do: func(ctx context.Context, s queue.Subtree) error {
			running.Store(s.Job.ID, true)
			select {
			case <-both:
			case <-ctx.Done():
				return ctx.Err()
			}
			time.Sleep(50 * time.Millisecond)
			return e.do(ctx, s)
		}})
		eventually(t, "the first job", func() bool { _, ok := running.Load(long.ID); return ok })
		short := create(t, q, "short", requests(6, 5))
		close(both)
		wait(t, q, short)
		p, err := q.Progress(t.Context(), long.ID)
		if err != nil || p.Done == 300 {
			t.Errorf("the short job waited for the long one: %+v, %v", p, err)
		}
		wait(t, q, long)
	})
}

// Workers come and go; what was in flight when one goes is stored.
func TestJoinAndLeave(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		q, e := open(t, dsn), newEngine()
		job := create(t, q, "join", requests(40, 25))
		slow := func(ctx context.Context, s queue.Subtree) error {
			time.Sleep(20 * time.Millisecond)
			return e.do(ctx, s)
		}
		for i := range 5 {
			stop := work(t, q, queue.WorkerOptions{Lanes: 2, Do: slow})
			eventually(t, "a call", func() bool { return e.count() > 60*i })
			stop()
			p, err := q.Progress(t.Context(), job.ID)
			if err != nil || p.Done != e.count() {
				t.Errorf("%d calls, %+v, %v", e.count(), p, err)
			}
		}
		work(t, q, queue.WorkerOptions{Lanes: 4, Do: slow})
		wait(t, q, job)
		complete(t, q, job, 1000)
		if e.count() != 1000 {
			t.Errorf("%d calls for 1000 requests", e.count())
		}
	})
}

// A worker whose Do does not stop ends its calls after the time of grace, and the work is left to others.
func TestGrace(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		q, e := open(t, dsn), newEngine()
		job := create(t, q, "grace", requests(1, 10))
		begun := make(chan struct{})
		stop := work(t, q, queue.WorkerOptions{Grace: 50 * time.Millisecond, Do: func(ctx context.Context, s queue.Subtree) error {
			close(begun)
			<-ctx.Done()
			return errors.Join(s.Store(ctx, e.answer(&s, &s.Requests[0])), ctx.Err()) // it came at the last moment
		}})
		<-begun
		stop()
		if p, err := q.Progress(t.Context(), job.ID); err != nil || p.Done != 1 {
			t.Errorf("%+v, %v, want the one answer", p, err)
		}
		work(t, q, queue.WorkerOptions{Do: e.do})
		wait(t, q, job)
		complete(t, q, job, 10)
	})
}

// Wait returns when the queue is closed.
func TestWaitClosed(t *testing.T) {
	q, err := queue.Open(t.Context(), t.TempDir()+"/jobs.db", queue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	job := create(t, q, "closed", requests(1, 1))
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if found, err := q.Wait(t.Context(), job.ID); err == nil {
		t.Errorf("%+v of a queue that is closed", found)
	}
}

// A job whose answers the database does not take is paused, and its requests are not asked again and again.
func TestBrokenTables(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		q, e := open(t, dsn), newEngine()
		job := create(t, q, "broken", requests(1, 10))
		if _, err := queue.QueryText(t.Context(), q, "ALTER TABLE batch_answer RENAME COLUMN took TO duration"); err != nil {
			t.Fatal(err)
		}
		work(t, q, queue.WorkerOptions{Do: e.do})
		eventually(t, "a pause", func() bool {
			found, err := q.Job(t.Context(), job.Name)
			return err == nil && found.State == queue.Paused && strings.Contains(found.Reason, "took")
		})
		if e.count() != 1 {
			t.Errorf("%d calls before the pause, want 1", e.count())
		}
		if _, err := queue.QueryText(t.Context(), q, "ALTER TABLE batch_answer RENAME COLUMN duration TO took"); err != nil {
			t.Fatal(err)
		}
		if err := q.Resume(t.Context(), job.ID); err != nil {
			t.Fatal(err)
		}
		wait(t, q, job)
		complete(t, q, job, 10)
	})
}
