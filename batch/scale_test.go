package batch_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/batch"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
)

// slowSim is a simulator that takes its time.
type slowSim struct {
	engines.Engine

	wait time.Duration
}

func (s slowSim) Generate(ctx context.Context, r engines.Request, onText func(string) error) (engines.Response, error) {
	select {
	case <-time.After(s.wait):
	case <-ctx.Done():
		return engines.Response{}, context.Cause(ctx)
	}
	return s.Engine.Generate(ctx, r, onText)
}

// calledSim is a simulator that says so before each answer.
type calledSim struct {
	engines.Engine

	called func(ctx context.Context)
}

func (c calledSim) Generate(ctx context.Context, r engines.Request, onText func(string) error) (engines.Response, error) {
	c.called(ctx)
	return c.Engine.Generate(ctx, r, onText)
}

func newSim(name string, wait time.Duration) batch.Replica {
	return batch.Replica{Name: name, Engine: slowSim{sim.New(sim.Options{}), wait}}
}

// groups is a table of n rows in groups that share a long text.
func groups(n int) string {
	text := "group,product,question\n"
	for i := range n {
		text += fmt.Sprintf("this is the long description of group %d and of all that is in it,product %d,question %d of a customer\n",
			i%40, i%800, i)
	}
	return text
}

// work runs a worker with a database connection of its own. stop ends it.
func work(t testing.TB, source string, o batch.WorkOptions) (stop func()) {
	t.Helper()
	jobs, err := batch.Open(t.Context(), source, batch.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- jobs.Work(ctx, o) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-ended, jobs.Close()); err != nil {
			t.Error(err)
		}
	})
}

// finished waits until a job has ended.
func finished(t testing.TB, jobs *batch.Jobs, name string) batch.Job {
	t.Helper()
	for {
		job, err := jobs.Job(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if job.State.Ended() {
			return job
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Rows per second of one and of four workers, each with a simulated engine of its own that takes 100 ms, on real PostgreSQL.
func BenchmarkWorkers(b *testing.B) {
	const rows = 2400
	path := written(b, "groups.csv", groups(rows))
	for _, workers := range []int{1, 4} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			var perSecond, hits float64
			for range b.N {
				source := storetest.PostgresSchema(b)
				jobs := jobsAt(b, source)
				if _, err := jobs.Add(b.Context(), "groups", opened(b, path), batch.Task{}, batch.AddOptions{}); err != nil {
					b.Fatal(err)
				}
				start := time.Now()
				for i := range workers {
					name := fmt.Sprintf("sim%d", i)
					defer work(b, source, batch.WorkOptions{
						Name: name, Concurrency: 8, Replicas: []batch.Replica{newSim(name, 100*time.Millisecond)},
					})()
				}
				job := finished(b, jobs, "groups")
				perSecond += rows / time.Since(start).Seconds()
				hits += float64(job.CachedTokens) / float64(job.PromptTokens)
			}
			b.ReportMetric(perSecond/float64(b.N), "rows/s")
			b.ReportMetric(100*hits/float64(b.N), "%cached")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// onBoth runs a test on an SQLite file and on PostgreSQL.
func onBoth(t *testing.T, test func(t *testing.T, source string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, filepath.Join(t.TempDir(), "jobs.db")) })
	t.Run("postgres", func(t *testing.T) { test(t, storetest.PostgresSchema(t)) })
}

// Of two jobs nothing is lost while one worker joins and another one leaves. That jobs share a worker evenly is tested in
// batch/internal/queue, where subtrees are counted.
func TestWorkersJoinAndLeave(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		const rows = 800
		jobs := jobsAt(t, source)
		tab := opened(t, written(t, "groups.csv", groups(rows)))
		for _, name := range []string{"first", "second"} {
			if _, err := jobs.Add(t.Context(), name, tab, batch.Task{}, batch.AddOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		worker := func(name string, called func(ctx context.Context)) (stop func()) {
			r := newSim(name, 5*time.Millisecond)
			r.Engine = calledSim{r.Engine, called}
			return work(t, source, batch.WorkOptions{Name: name, Concurrency: 4, Replicas: []batch.Replica{r}})
		}
		// The first worker gets to a quarter of all and goes on when the second one is at work, or else it could end the jobs alone.
		quarter, joined := make(chan struct{}), make(chan struct{})
		var calls atomic.Int64
		join := sync.OnceFunc(func() { close(joined) })
		defer join()
		stopA := worker("a", func(ctx context.Context) {
			switch n := calls.Add(1); {
			case n == rows/2:
				close(quarter)
			case n > rows/2:
				select {
				case <-joined:
				case <-ctx.Done():
				}
			}
		})
		defer stopA()
		<-quarter
		defer worker("b", func(context.Context) { join() })()
		stopA()
		by := map[string]bool{}
		for _, name := range []string{"first", "second"} {
			job := finished(t, jobs, name)
			if job.RowsDone != rows || job.Done != job.Requests || job.Attempts != int64(job.Requests) {
				t.Errorf("%s: %d rows and %d of %d requests answered by %d calls", name, job.RowsDone, job.Done, job.Requests, job.Attempts)
			}
			for name := range job.Engines {
				by[name] = true
			}
		}
		if !by["a"] || !by["b"] {
			t.Errorf("answered by %v", by)
		}
	})
}
