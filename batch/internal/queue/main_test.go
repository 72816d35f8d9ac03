package queue_test

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/batch/internal/queue"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childDSN) != "" {
		child() // until it is killed
		return
	}
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked { // each check runs workers, whose looks at the database take time
		if err := flag.Set("rapid.checks", "8"); err != nil {
			panic(err)
		}
	}
	// pgx closes a connection in which a query was cut off by a goroutine of its own, which waits for the server for some seconds.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgconn.(*PgConn).asyncClose.func1"))
}

// patience bounds what should not take long; what takes longer hangs.
const patience = time.Minute

// onBoth runs a test on an empty SQLite file and on an empty schema of PostgreSQL.
func onBoth(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, filepath.Join(t.TempDir(), "jobs.db")) })
	t.Run("postgres", func(t *testing.T) { test(t, storetest.PostgresSchema(t)) })
}

// open opens a queue whose processes count as dead after five seconds.
func open(t testing.TB, dsn string) *queue.Queue {
	t.Helper()
	q, err := queue.Open(t.Context(), dsn, queue.Options{Heartbeat: time.Second, Logger: logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	return q
}

// logger shows what is logged with go test -v.
func logger(t testing.TB) *slog.Logger {
	if !testing.Verbose() {
		return nil
	}
	return slog.New(slog.NewTextHandler(lines{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

type lines struct{ t testing.TB }

func (l lines) Write(text []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(text)))
	return len(text), nil
}

// requests returns subtrees of some requests each. Rows are in the opposite order.
func requests(subtrees, each int) iter.Seq2[queue.Request, error] {
	return func(yield func(queue.Request, error) bool) {
		n := subtrees * each
		for seq := range n {
			if !yield(queue.Request{Seq: seq, Subtree: seq / each, Rows: []int{n - 1 - seq}, Text: fmt.Sprint("request ", seq)}, nil) {
				return
			}
		}
	}
}

// create makes a job.
func create(t testing.TB, q *queue.Queue, name string, all iter.Seq2[queue.Request, error]) queue.Job {
	t.Helper()
	job, err := q.Create(t.Context(), queue.NewJob{Name: name, Spec: []byte(`{"model":"m"}`)}, all)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// engine is a fake engine that counts its calls.
type engine struct {
	mu    sync.Mutex
	calls map[string]int // by job and Seq
	order []string
}

func newEngine() *engine { return &engine{calls: map[string]int{}} }

// answer is the fake engine's answer.
func (e *engine) answer(s *queue.Subtree, r *queue.Request) queue.Answer {
	e.mu.Lock()
	defer e.mu.Unlock()
	name := fmt.Sprint(s.Job.ID, "/", r.Seq)
	e.calls[name]++
	e.order = append(e.order, name)
	return answerOf(r.Seq)
}

func (e *engine) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.order)
}

// of returns how often a request was called.
func (e *engine) of(job int64, seq int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calls[fmt.Sprint(job, "/", seq)]
}

func answerOf(seq int) queue.Answer {
	return queue.Answer{
		Seq: seq, Text: fmt.Sprint("answer ", seq), Finish: "stop", Attempts: 1, Took: 5 * time.Millisecond, Replica: fmt.Sprint("r", seq%2),
		Usage: engines.Usage{PromptTokens: 10, CachedTokens: 4, OutputTokens: 3, CachedKnown: true},
	}
}

// do answers the requests one after the other, until it is to stop.
func (e *engine) do(ctx context.Context, s queue.Subtree) error {
	for i := range s.Requests {
		select {
		case <-s.Stop:
			return nil
		default:
		}
		if err := s.Store(ctx, e.answer(&s, &s.Requests[i])); err != nil {
			return err
		}
	}
	return nil
}

// work starts a worker and returns what stops it and waits.
func work(t testing.TB, q *queue.Queue, opts queue.WorkerOptions) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- q.Work(ctx, opts) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Error("the worker does not stop")
		}
	})
	t.Cleanup(stop)
	return stop
}

// wait waits until a job is finished.
func wait(t testing.TB, q *queue.Queue, job queue.Job) queue.Job {
	t.Helper()
	return waitFor(t, q, job, patience)
}

func waitFor(t testing.TB, q *queue.Queue, job queue.Job, limit time.Duration) queue.Job {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	got, err := q.Wait(ctx, job.ID)
	if err != nil || got.State != queue.Finished {
		p, _ := q.Progress(t.Context(), job.ID)
		t.Fatalf("job %q is %s %q, %v: %+v", job.Name, got.State, got.Reason, err, p)
	}
	return got
}

// eventually waits until f returns true.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s does not happen", what)
		}
	}
}

// complete checks that all n requests are answered once, in the order of Seq and of rows.
func complete(t testing.TB, q *queue.Queue, job queue.Job, n int) {
	t.Helper()
	seq := 0
	for a, err := range q.Answers(t.Context(), job.ID) {
		if err != nil {
			t.Fatal(err)
		}
		want := answerOf(seq)
		if want.At = a.At; a != want || a.At.IsZero() {
			t.Fatalf("answer %d is %+v", seq, a)
		}
		seq++
	}
	row := 0
	for a, err := range q.Rows(t.Context(), job.ID) {
		if err != nil {
			t.Fatal(err)
		}
		if a.Row != row || a.Seq != n-1-row {
			t.Fatalf("row %d has answer %d, want row %d and answer %d", a.Row, a.Seq, row, n-1-row)
		}
		row++
	}
	p, err := q.Progress(t.Context(), job.ID)
	if err != nil || seq != n || row != n || p.Done != n || p.RowsDone != n || p.Failed != 0 || p.Requests != n ||
		p.PromptTokens != int64(10*n) || p.CachedTokens != int64(4*n) || p.OutputTokens != int64(3*n) || p.Attempts != int64(n) ||
		p.Replicas["r0"].Done != (n+1)/2 || p.FirstAnswer.After(p.LastAnswer) || p.FirstAnswer.IsZero() {
		t.Fatalf("%d answers of %d, %d rows, %+v, %v", seq, n, row, p, err)
	}
}
