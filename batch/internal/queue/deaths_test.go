//go:build unix

package queue_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/batch/internal/queue"
)

// Requests that end their process each time fail after some deaths, and nothing else does: neither the rest of their subtrees, nor the
// subtrees that ran beside them.
func TestDeadlyRequests(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts processes that die")
	}
	onBoth(t, func(t *testing.T, dsn string) {
		q := open(t, dsn)
		job := create(t, q, "deadly", requests(6, 10))
		deadly := map[int]bool{0: true, 3: true, 25: true}
		deaths := 0
		ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
		defer cancel()
		done := make(chan error, 1)
		go func() {
			_, err := q.Wait(ctx, job.ID)
			cancel() // it ends the child
			done <- err
		}()
		for ctx.Err() == nil {
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.WaitDelay = 10 * time.Second
			cmd.Env = append(os.Environ(), childDSN+"="+dsn, childCalls+"="+os.DevNull, childDies+"= 0 3 25 ")
			out, err := cmd.CombinedOutput()
			if ctx.Err() == nil {
				deaths++
				if cmd.ProcessState.ExitCode() != 9 {
					t.Errorf("a worker ended: %v, %s", err, out)
				}
			}
		}
		if err := <-done; err != nil {
			t.Fatalf("after %d deaths: %v", deaths, err)
		}
		n := 0
		for a, err := range q.Answers(t.Context(), job.ID) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; deadly[a.Seq] != (a.Failure.Code == "deaths") || !deadly[a.Seq] && a.Text != fmt.Sprint("answer ", a.Seq) {
				t.Errorf("%+v", a)
			}
		}
		t.Logf("%d deaths", deaths)
		if n != 60 || deaths > 20 {
			t.Errorf("%d answers of 60 after %d deaths", n, deaths)
		}
	})
}

// Stops do not count as deaths.
func TestAloneStopped(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		q, e := open(t, dsn), newEngine()
		job := create(t, q, "stopped", requests(2, 10))
		for range 5 {
			if err := queue.CountDeath(t.Context(), q, job.ID, 0); err != nil {
				t.Fatal(err)
			}
		}
		for range 4 {
			begun := make(chan int, 10)
			stop := work(t, q, queue.WorkerOptions{Lanes: 2, Do: func(_ context.Context, s queue.Subtree) error {
				if s.Number == 0 {
					begun <- len(s.Requests)
				}
				<-s.Stop
				return nil
			}})
			if n := <-begun; n != 1 {
				t.Errorf("%d requests run together", n)
			}
			stop()
		}
		work(t, q, queue.WorkerOptions{Lanes: 2, Do: e.do})
		wait(t, q, job)
		complete(t, q, job, 20)
	})
}
