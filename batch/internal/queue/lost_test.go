package queue_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/batch/internal/queue"
)

// slowly answers the requests of a subtree one after the other, and ends early when the subtree stops.
func slowly(e *engine) func(context.Context, queue.Subtree) error {
	return func(ctx context.Context, s queue.Subtree) error {
		for i := range s.Requests {
			select {
			case <-s.Stop:
				return nil
			case <-time.After(10 * time.Millisecond):
			}
			if err := s.Store(ctx, e.answer(&s, &s.Requests[i])); err != nil {
				return err
			}
		}
		return nil
	}
}

// A worker that was taken for dead, as one that stood still for a time is, leaves its subtree to the worker that has it now.
func TestTakenForDead(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		q, e := open(t, dsn), newEngine()
		const n = 500
		job := create(t, q, "dead", requests(1, n))
		var second atomic.Int64 // how often the worker that takes it over began the subtree
		work(t, q, queue.WorkerOptions{Name: "stands-still", Do: slowly(e)})
		eventually(t, "a call", func() bool { return e.count() > 0 })
		work(t, open(t, dsn), queue.WorkerOptions{Do: func(ctx context.Context, s queue.Subtree) error {
			second.Add(1)
			return slowly(e)(ctx, s)
		}})
		eventually(t, "a takeover", func() bool {
			if _, err := queue.QueryText(t.Context(), q, "DELETE FROM batch_process WHERE id LIKE 'stands-still%'"); err != nil {
				t.Log(err)
			}
			return second.Load() > 0
		})
		wait(t, q, job)
		complete(t, q, job, n)
		if e.count() > n+n/2 {
			t.Errorf("%d calls for %d requests: both workers went on", e.count(), n)
		}
		if second.Load() != 1 { // the first one may take it again itself, before the takeover
			t.Errorf("the subtree was begun %d times by the worker that took it over", second.Load())
		}
	})
}

// A worker that was taken for dead may take its subtree again itself.
func TestTakenAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		q, e := open(t, dsn), newEngine()
		job := create(t, q, "again", requests(1, 300))
		var now, most atomic.Int64
		work(t, q, queue.WorkerOptions{Name: "stands-still", Lanes: 2, Do: func(ctx context.Context, s queue.Subtree) error {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			return slowly(e)(ctx, s)
		}})
		eventually(t, "a call", func() bool { return e.count() > 0 })
		if _, err := queue.QueryText(t.Context(), q, "UPDATE river_job SET state = 'available' WHERE state = 'running'"); err != nil {
			t.Fatal(err)
		}
		wait(t, q, job)
		complete(t, q, job, 300)
		if e.count() > 302 || most.Load() > 1 {
			t.Errorf("%d calls for 300 requests, by up to %d runs at a time", e.count(), most.Load())
		}
	})
}

// With SQLite a process that exists is given more time: its heartbeat may wait for the lock of the file. One that does not exist, or whose
// machine is another, is given none, or the usual time.
func TestExistingProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("whether a process exists is not asked for on Windows")
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		t.Skipf("this machine has no name: %v", err)
	}
	q, err := queue.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), queue.Options{Heartbeat: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	for id, p := range map[string]struct {
		host string
		pid  int
	}{"here": {host, os.Getpid()}, "elsewhere": {host + "x", os.Getpid()}, "gone": {host, 1 << 30}} {
		if _, err := queue.QueryText(t.Context(), q,
			"INSERT INTO batch_process (id, host, pid, beat, seen) VALUES ($1, $2, $3, 1, 0)", id, p.host, p.pid); err != nil {
			t.Fatal(err)
		}
	}
	var left []string
	seen := func(want ...string) func() bool {
		return func() bool {
			left, err = queue.QueryText(t.Context(), q, "SELECT id FROM batch_process WHERE seen = 0 ORDER BY id")
			return err == nil && slices.Equal(left, want)
		}
	}
	work(t, q, queue.WorkerOptions{Do: slowly(newEngine())})
	eventually(t, "the end of the process that is gone", seen("elsewhere", "here"))
	eventually(t, "the end of the process elsewhere, before that of the one here", seen("here"))
	eventually(t, "the end of the process here", seen())
}
