package queue_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/batch/internal/queue"
	"github.com/ragpilot/ragpilot/engines"
)

// Two processes that answer the same requests: the first answer stays, and the sums count it alone.
func TestStoredOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		const n, processes = 40, 4
		q := open(t, dsn)
		job := create(t, q, "once", requests(1, n))
		answer := func(process, seq int) queue.Answer {
			return queue.Answer{
				Seq: seq, Text: fmt.Sprint("of process ", process), Finish: "stop", Attempts: 1, Replica: "r",
				Usage: engines.Usage{PromptTokens: 1 << process},
			}
		}
		if err := queue.StoreAs(q, "first", job.ID, 1, answer(20, 0)); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for process := range processes {
			other := open(t, dsn)
			wg.Go(func() {
				for i := range n {
					seq := i
					if process%2 == 1 {
						seq = n - 1 - i // they meet in the middle
					}
					if err := queue.StoreAs(other, fmt.Sprint(process), job.ID, 1, answer(process, seq)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		var tokens, answers int64
		for a, err := range q.Answers(t.Context(), job.ID) {
			if err != nil {
				t.Fatal(err)
			}
			if a.Seq == 0 && a.Text != "of process 20" {
				t.Errorf("the first answer of request 0 has become %q", a.Text)
			}
			tokens += int64(a.Usage.PromptTokens)
			answers++
		}
		p, err := q.Progress(t.Context(), job.ID)
		if err != nil || answers != n || p.Done != n || p.RowsDone != n || p.Attempts != n || p.PromptTokens != tokens {
			t.Errorf("%d answers with %d tokens, %+v, %v", answers, tokens, p, err)
		}
		for seq := range n { // also long after
			if err := queue.StoreAs(q, "late", job.ID, 1, queue.Answer{Seq: seq, Failure: queue.Failure{Code: "late"}}); err != nil {
				t.Error(err)
			}
		}
		if again, err := q.Progress(t.Context(), job.ID); err != nil || again.Counts != p.Counts {
			t.Errorf("%+v after late failures, want %+v, %v", again.Counts, p.Counts, err)
		}
	})
}

// While the disk is full, Store waits and no new calls start; with space again everything is stored once. Create says why it fails and
// leaves nothing.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	q, e := open(t, t.TempDir()+"/jobs.db"), newEngine()
	job := create(t, q, "full", requests(40, 25))
	limit := func(text string) {
		t.Helper()
		if _, err := queue.QueryText(t.Context(), q, text); err != nil {
			t.Fatal(err)
		}
	}
	const lanes = 3
	pages, err := queue.QueryText(t.Context(), q, "PRAGMA page_count")
	if err != nil {
		t.Fatal(err)
	}
	limit("PRAGMA max_page_count = " + pages[0]) // SQLite's own code for a full disk
	_, err = q.Create(t.Context(), queue.NewJob{Name: "no space"}, requests(500, 50))
	if err == nil || !strings.Contains(err.Error(), `batch job "no space"`) || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("Create: %v", err)
	}
	work(t, q, queue.WorkerOptions{Lanes: lanes, Do: e.do})
	stuck := stopped(t, e)
	p, err := q.Progress(t.Context(), job.ID)
	if err != nil || stuck == 1000 || p.Done > stuck || p.Done < stuck-lanes {
		t.Errorf("%d calls on a full disk, %+v, %v", stuck, p.Counts, err)
	}
	limit("PRAGMA max_page_count = 1000000")
	wait(t, q, job)
	complete(t, q, job, 1000)
	if e.count() != 1000 {
		t.Errorf("%d calls for 1000 requests", e.count())
	}
	if jobs, err := q.Jobs(t.Context()); err != nil || len(jobs) != 1 {
		t.Errorf("%+v, %v: the job without space is left", jobs, err)
	}
}

// stopped waits until an engine gets no calls any more, because Store waits, and returns how many it got.
func stopped(t *testing.T, e *engine) (calls int) {
	t.Helper()
	eventually(t, "that Store waits", func() bool {
		calls = e.count()
		time.Sleep(700 * time.Millisecond)
		return calls > 0 && e.count() == calls
	})
	return calls
}
