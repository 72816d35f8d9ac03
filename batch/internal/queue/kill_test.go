//go:build unix

package queue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/batch/internal/queue"
)

// childDSN names the environment variable that makes this program a worker that waits to be killed, or with childLoads a loader.
const (
	childDSN   = "BATCH_QUEUE_TEST_CHILD"
	childCalls = "BATCH_QUEUE_TEST_CALLS"
	childLoads = "BATCH_QUEUE_TEST_LOADS"
	childDies  = "BATCH_QUEUE_TEST_DIES" // the requests that end the process, as " 3 15 "
)

// childLanes are the calls that a child has in flight.
const childLanes = 3

// child works with a fake engine that notes each call in a file before it answers.
func child() {
	fail := func(err error) {
		fmt.Println("error", err)
		os.Exit(1)
	}
	ctx := context.Background()
	opts := queue.Options{} // on SQLite the process ID says at once who is dead
	if strings.HasPrefix(os.Getenv(childDSN), "postgres") {
		opts.Heartbeat = 300 * time.Millisecond
	}
	q, err := queue.Open(ctx, os.Getenv(childDSN), opts)
	if err != nil {
		fail(err)
	}
	if os.Getenv(childLoads) != "" {
		_, err := q.Create(ctx, queue.NewJob{Name: "loaded"}, func(yield func(queue.Request, error) bool) {
			for i := 0; yield(queue.Request{Seq: i, Subtree: i / 100, Rows: []int{i}}, nil); i++ {
				if i == 20000 {
					fmt.Println("loading")
				}
			}
		})
		fail(err)
	}
	calls, err := os.OpenFile(os.Getenv(childCalls), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		fail(err)
	}
	fail(q.Work(ctx, queue.WorkerOptions{Lanes: childLanes, Do: func(ctx context.Context, s queue.Subtree) error {
		for _, r := range s.Requests {
			if _, err := fmt.Fprintln(calls, r.Seq); err != nil {
				return err
			}
			if strings.Contains(os.Getenv(childDies), fmt.Sprint(" ", r.Seq, " ")) {
				os.Exit(9)
			}
			time.Sleep(3 * time.Millisecond)
			if err := s.Store(ctx, answerOf(r.Seq)); err != nil {
				return err
			}
		}
		return nil
	}}))
}

// startChild starts a child. kill ends it at once.
func startChild(t *testing.T, env ...string) (out *strings.Builder, kill func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), env...)
	out = &strings.Builder{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return out, func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}
}

// Workers that are killed at any moment lose no request, and repeat at most the calls that they had in flight.
// RAGPILOT_BATCH_KILLS is how many are killed.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	kills := 8
	if text := os.Getenv("RAGPILOT_BATCH_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	onBoth(t, func(t *testing.T, dsn string) {
		q := open(t, dsn)
		n := kills * 600
		job := create(t, q, "killed", requests(n/30, 30))
		calls := filepath.Join(t.TempDir(), "calls")
		start := func() func() {
			out, kill := startChild(t, childDSN+"="+dsn, childCalls+"="+calls)
			return func() {
				kill()
				if strings.Contains(out.String(), "error") || strings.Contains(out.String(), "panic") {
					t.Error(out)
				}
			}
		}
		random := rand.New(rand.NewPCG(3, 4))
		children := []func(){start(), start()}
		defer func() {
			for _, kill := range children {
				kill()
			}
		}()
		for i := range kills {
			time.Sleep(time.Duration(100+random.IntN(600)) * time.Millisecond)
			children[i%2]()
			children[i%2] = start()
		}
		before, err := q.Progress(t.Context(), job.ID)
		if err != nil {
			t.Fatal(err)
		}
		waitFor(t, q, job, patience+time.Duration(kills)*time.Second)
		complete(t, q, job, n)
		text, err := os.ReadFile(calls)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		made := strings.Fields(string(text))
		for _, seq := range made {
			seen[seq] = true
		}
		t.Logf("%d kills, %d of %d requests done at the last one, %d calls repeated", kills, before.Done, n, len(made)-len(seen))
		if len(seen) != n || len(made)-len(seen) > kills*childLanes {
			t.Errorf("%d requests were called, want %d; %d were called again, want at most %d", len(seen), n, len(made)-len(seen), kills*childLanes)
		}
	})
}

// A job whose loader is killed never runs, and goes.
func TestLoaderKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	onBoth(t, func(t *testing.T, dsn string) {
		q, e := open(t, dsn), newEngine()
		work(t, q, queue.WorkerOptions{Do: e.do})
		out, kill := startChild(t, childDSN+"="+dsn, childLoads+"=1")
		eventually(t, "loading", func() bool {
			job, err := q.Job(t.Context(), "loaded")
			return err == nil && job.State == queue.Loading
		})
		time.Sleep(500 * time.Millisecond)
		if _, err := q.Create(t.Context(), queue.NewJob{Name: "loaded"}, requests(1, 1)); err == nil {
			t.Error("the name of a job that is being loaded is free")
		}
		kill()
		eventually(t, "the removal of the job", func() bool {
			_, err := q.Job(t.Context(), "loaded")
			return err != nil
		})
		if e.count() != 0 {
			t.Errorf("%d calls of a job that was not loaded; the loader says %s", e.count(), out)
		}
		complete(t, q, wait(t, q, create(t, q, "loaded", requests(2, 10))), 20)
	})
}
