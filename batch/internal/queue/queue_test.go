package queue_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/batch/internal/queue"
)

func TestAllAnswered(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		q, e := open(t, dsn), newEngine()
		job := create(t, q, "all", requests(20, 50))
		if job.State != queue.Running || job.Requests != 1000 || job.Subtrees != 20 || job.Rows != 1000 || string(job.Spec) != `{"model":"m"}` {
			t.Fatalf("%+v", job)
		}
		work(t, q, queue.WorkerOptions{Lanes: 1, Do: e.do})
		job = wait(t, q, job)
		complete(t, q, job, 1000)
		for i, name := range e.order {
			if want := fmt.Sprint(job.ID, "/", i); name != want {
				t.Fatalf("call %d was %s, want %s", i, name, want)
			}
		}
		again, err := q.Job(t.Context(), fmt.Sprint(job.ID))
		if all, err2 := q.Jobs(t.Context()); err != nil || err2 != nil || len(all) != 1 || all[0].Ended != again.Ended || again.Ended.IsZero() {
			t.Errorf("%+v, %+v, %v, %v", again, all, err, err2)
		}
		if err := q.Delete(t.Context(), job.ID); err != nil {
			t.Error(err)
		}
		if _, err := q.Job(t.Context(), "all"); !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("a deleted job: %v", err)
		}
	})
}

// Several workers on one database do each request once, and those of a subtree in their order.
func TestManyWorkers(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		e := newEngine()
		q := open(t, dsn)
		job := create(t, q, "many", requests(60, 20))
		for range 4 {
			work(t, open(t, dsn), queue.WorkerOptions{Lanes: 3, Do: e.do})
		}
		wait(t, q, job)
		complete(t, q, job, 1200)
		last := map[int]int{}
		for _, name := range e.order {
			var id, seq int
			if _, err := fmt.Sscanf(name, "%d/%d", &id, &seq); err != nil {
				t.Fatal(err)
			}
			if e.calls[name] != 1 {
				t.Errorf("request %d was called %d times", seq, e.calls[name])
			}
			if before, ok := last[seq/20]; ok && seq != before+1 {
				t.Errorf("request %d came after %d", seq, before)
			}
			last[seq/20] = seq
		}
	})
}

func TestPauseResumeCancel(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		q, e := open(t, dsn), newEngine()
		job := create(t, q, "pause", requests(10, 100))
		slow := func(ctx context.Context, s queue.Subtree) error {
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
		work(t, q, queue.WorkerOptions{Lanes: 2, Do: slow})
		quiet := func() (calls int) {
			eventually(t, "quiet", func() bool {
				calls = e.count()
				time.Sleep(300 * time.Millisecond)
				p, err := q.Progress(t.Context(), job.ID)
				return err == nil && p.Done == calls && e.count() == calls // a machine may be held up for 300 ms with a call in flight
			})
			if calls > 500 {
				t.Errorf("%d calls: nothing was stopped", calls)
			}
			return calls
		}
		eventually(t, "the first calls", func() bool { return e.count() > 10 })
		if err := q.Pause(t.Context(), job.ID, "lunch"); err != nil {
			t.Fatal(err)
		}
		calls := quiet()
		if found, err := q.Job(t.Context(), "pause"); err != nil || found.State != queue.Paused || found.Reason != "lunch" {
			t.Errorf("%+v, %v", found, err)
		}
		if err := q.Resume(t.Context(), job.ID); err != nil {
			t.Fatal(err)
		}
		eventually(t, "calls after Resume", func() bool { return e.count() > calls+20 })
		if err := q.Cancel(t.Context(), job.ID, "enough"); err != nil {
			t.Fatal(err)
		}
		quiet()
		if err := q.Resume(t.Context(), job.ID); !errors.Is(err, queue.ErrState) || !strings.Contains(err.Error(), "cancelled") {
			t.Errorf("Resume of a cancelled job: %v", err)
		}
		for name, n := range e.calls {
			if n != 1 {
				t.Errorf("request %s was called %d times", name, n)
			}
		}
		first := map[int]bool{} // those that were stopped go on before others start
		for _, name := range e.order[:calls+20] {
			var id, seq int
			_, _ = fmt.Sscanf(name, "%d/%d", &id, &seq)
			first[seq/100] = true
		}
		if len(first) != 2 {
			t.Errorf("after Resume the calls were of subtrees %v, want two", first)
		}
	})
}

// A job that is reopened does again what has failed, and nothing else; a cancelled one goes on.
func TestReopen(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		q, e := open(t, dsn), newEngine()
		job := create(t, q, "reopen", requests(10, 20))
		if err := q.Reopen(t.Context(), job.ID); !errors.Is(err, queue.ErrState) {
			t.Errorf("a running job is reopened: %v", err)
		}
		var stops atomic.Bool // the engine refuses every third request
		stops.Store(true)
		work(t, q, queue.WorkerOptions{Lanes: 2, Do: func(ctx context.Context, s queue.Subtree) error {
			for i := range s.Requests {
				r := &s.Requests[i]
				a := e.answer(&s, r)
				if stops.Load() && r.Seq%3 == 0 {
					a = queue.Answer{Seq: r.Seq, Attempts: 1, Failure: queue.Failure{Code: "refused", Status: 400}}
				}
				if err := s.Store(ctx, a); err != nil {
					return err
				}
			}
			return nil
		}})
		job = wait(t, q, job)
		before, err := q.Progress(t.Context(), job.ID)
		if err != nil || before.Failed != 67 || before.Done != 133 {
			t.Fatalf("%+v, %v", before, err)
		}
		stops.Store(false)
		if err := q.Reopen(t.Context(), job.ID); err != nil {
			t.Fatal(err)
		}
		job = wait(t, q, job)
		for a, err := range q.Answers(t.Context(), job.ID) {
			if err != nil || a.Failure != (queue.Failure{}) || a.Text != answerOf(a.Seq).Text {
				t.Errorf("%+v, %v", a, err)
			}
		}
		after, err := q.Progress(t.Context(), job.ID)
		if err != nil || after.Failed != 0 || after.RowsFailed != 0 || after.Done != 200 || after.Attempts != before.Attempts+67 {
			t.Errorf("%+v, then %+v, %v", before, after, err)
		}
		for seq := range 200 {
			want := 1
			if seq%3 == 0 {
				want = 2
			}
			if n := e.of(job.ID, seq); n != want {
				t.Errorf("request %d was called %d times, want %d", seq, n, want)
			}
		}
		if err := q.Reopen(t.Context(), job.ID); err != nil { // there is nothing to do
			t.Fatal(err)
		}
		if job = wait(t, q, job); e.count() != 267 {
			t.Errorf("%d calls, want 267", e.count())
		}

		idle := create(t, q, "idle", requests(3, 20))
		err = errors.Join(q.Pause(t.Context(), idle.ID, ""), q.Cancel(t.Context(), idle.ID, ""), q.Reopen(t.Context(), idle.ID))
		if err != nil {
			t.Fatal(err)
		}
		complete(t, q, wait(t, q, idle), 60)
	})
}

// Failures that are stored while a job is reopened are forgotten or counted, never one without the other.
func TestReopenWhileStored(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		q := open(t, dsn)
		for round := range 30 {
			job := create(t, q, fmt.Sprint("round ", round), requests(1, 40))
			if err := q.Cancel(t.Context(), job.ID, ""); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for w := range 4 {
				wg.Go(func() {
					for seq := w; seq < 40; seq += 4 {
						a := queue.Answer{Seq: seq, Failure: queue.Failure{Code: "late"}}
						if err := queue.StoreAs(q, fmt.Sprint("process ", seq), job.ID, 1, a); err != nil {
							t.Error(err)
						}
					}
				})
			}
			for range 5 {
				if err := errors.Join(q.Reopen(t.Context(), job.ID), q.Cancel(t.Context(), job.ID, "")); err != nil {
					t.Error(err)
				}
			}
			wg.Wait()
			failed := 0
			for _, err := range q.Answers(t.Context(), job.ID) {
				if failed++; err != nil {
					t.Fatal(err)
				}
			}
			p, err := q.Progress(t.Context(), job.ID)
			if err != nil || p.Failed != failed || p.Done != 0 {
				t.Fatalf("%d failures are stored, %+v are counted, %v", failed, p.Counts, err)
			}
		}
	})
}

// A job whose loading fails leaves nothing, and its name is free.
func TestLoadFails(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		q := open(t, dsn)
		broken := errors.New("line 6000: no such column")
		for name, test := range map[string]struct {
			at   int
			with queue.Request
			err  error
			want string
		}{
			"source": {6000, queue.Request{}, broken, "line 6000"},
			"gap":    {6000, queue.Request{Seq: 6001, Subtree: 60}, nil, "request 6000: Seq = 6001, want 6000"},
			"back":   {6000, queue.Request{Seq: 6000, Subtree: 58}, nil, "request 6000: Subtree = 58, want 59 or 60"},
			"twice":  {6000, queue.Request{Seq: 6000, Subtree: 60, Rows: []int{5}}, nil, "request 6000: row 5 belongs to an earlier request as well"},
			"minus":  {6000, queue.Request{Seq: 6000, Subtree: 60, Rows: []int{-1}}, nil, "request 6000: row -1"},
		} {
			t.Run(name, func(t *testing.T) {
				_, err := q.Create(t.Context(), queue.NewJob{Name: "load"}, func(yield func(queue.Request, error) bool) {
					for i := range test.at {
						if !yield(queue.Request{Seq: i, Subtree: i / 100, Rows: []int{i}}, nil) {
							t.Error("Create stops early")
							return
						}
					}
					yield(test.with, test.err)
				})
				if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), `"load"`) {
					t.Errorf("%v, want %q", err, test.want)
				}
				if jobs, err := q.Jobs(t.Context()); err != nil || len(jobs) != 0 {
					t.Errorf("%+v are left, %v", jobs, err)
				}
			})
		}
		create(t, q, "load", requests(1, 1))
		if _, err := q.Create(t.Context(), queue.NewJob{Name: "load"}, requests(1, 1)); !errors.Is(err, queue.ErrExists) {
			t.Errorf("a second job with the name: %v", err)
		}
		for _, name := range []string{"12", "", "\x1b[31mred", "two\nlines", "\xff"} {
			if _, err := q.Create(t.Context(), queue.NewJob{Name: name}, requests(1, 1)); err == nil {
				t.Errorf("a name may be %q", name)
			}
		}
		empty := create(t, q, "empty", requests(0, 1))
		if empty.State != queue.Finished {
			t.Errorf("a job without requests is %s", empty.State)
		}
	})
}

func TestOpenTogether(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				q, err := queue.Open(context.Background(), dsn, queue.Options{})
				if err != nil {
					t.Error(err)
					return
				}
				if err := q.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

// A process waits longer for a locked file than SQLite does itself: others may have the lock each time that SQLite looks.
func TestOpenWhileLocked(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for longer than SQLite does, which is ten seconds")
	}
	path := filepath.Join(t.TempDir(), "jobs.db")
	open(t, path)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(11*time.Second, func() { _, _ = conn.ExecContext(context.Background(), "ROLLBACK") })
	open(t, path)
}

func TestOpenErrors(t *testing.T) {
	for _, dsn := range []string{
		"postgres://ana:hunter2@127.0.0.1:1/none?sslmode=disable&connect_timeout=2", "postgres://ana:hunter2@127.0.0.1:port/none",
		"POSTGRES://ana:hunter2@127.0.0.1:1/none?sslmode=disable&connect_timeout=2", "mysql://ana:hunter2@127.0.0.1/none",
		"host=127.0.0.1 password=hunter2", "password = hunter2 host=127.0.0.1", "postgres:/ana:hunter2@127.0.0.1/none",
		"", ":memory:", t.TempDir(), t.TempDir() + "/none/jobs.db",
	} {
		q, err := queue.Open(t.Context(), dsn, queue.Options{})
		if err == nil {
			_ = q.Close()
		}
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", dsn, err)
		}
	}
}

func TestFileMode(t *testing.T) {
	path := t.TempDir() + "/jobs.db"
	create(t, open(t, path), "mode", requests(1, 1))
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
