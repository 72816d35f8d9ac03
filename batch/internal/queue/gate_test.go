package queue

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// gateRun starts subtrees of two queues that always have work, and counts those started. Queue a asks first in each round, and wants as
// much as it can have.
func gateRun(lanes, rounds int) map[string]int {
	g, now := newGate(lanes), time.Now()
	g.allow("a", true)
	g.allow("b", true)
	started := map[string]int{}
	var running []int64
	next := int64(0)
	random := rand.New(rand.NewPCG(1, 2))
	for range rounds {
		now = now.Add(pollInterval)
		for _, queue := range []string{"a", "b"} {
			granted := g.reserve(queue, lanes, now)
			var ids []int64
			for range granted {
				next++
				ids = append(ids, next)
			}
			g.took(queue, granted, ids)
			running = append(running, ids...)
			started[queue] += granted
		}
		if len(running) > 0 {
			i := random.IntN(len(running))
			g.release(running[i])
			running = slices.Delete(running, i, i+1)
		}
	}
	return started
}

// Two jobs start as many subtrees, whichever asks first.
func TestGateFair(t *testing.T) {
	for lanes := 1; lanes <= 5; lanes++ {
		started := gateRun(lanes, 1000)
		sum := started["a"] + started["b"]
		if sum < 990 || started["a"] < sum*45/100 || started["b"] < sum*45/100 {
			t.Errorf("%d lanes: subtrees started: %v, want about half each", lanes, started)
		}
	}
}

// The gate never gives out more lanes than there are, and none to a queue that is not allowed or while it is shut.
func TestGateLimits(t *testing.T) {
	g, now := newGate(3), time.Now()
	if n := g.reserve("a", 3, now); n != 0 {
		t.Errorf("%d lanes for a queue that is not allowed", n)
	}
	g.allow("a", true)
	if n := g.reserve("a", 5, now); n != 3 {
		t.Errorf("%d lanes of 3 for the only queue", n)
	}
	g.took("a", 3, []int64{1, 2, 3})
	g.allow("b", true)
	if n := g.reserve("b", 1, now); n != 0 {
		t.Errorf("%d lanes beyond 3", n)
	}
	g.release(2)
	if n := g.reserve("a", 1, now); n != 0 {
		t.Errorf("%d lanes for the queue that has two, while another waits", n)
	}
	g.shut(true)
	if n := g.reserve("b", 1, now); n != 0 {
		t.Errorf("%d lanes while the gate is shut", n)
	}
	g.shut(false)
	if n := g.reserve("b", 2, now); n != 1 || g.holds("b") != 1 || g.holds("a") != 2 {
		t.Errorf("%d lanes for b, which holds %d, and a %d", n, g.holds("b"), g.holds("a"))
	}
	g.took("b", 1, nil) // it found nothing: what it does not need others may have
	if n := g.reserve("a", 3, now); n != 1 {
		t.Errorf("%d lanes for a while b has no work, want 1", n)
	}
}

// What trying again cannot help is not what a full disk or a server that is away returns.
func TestHopeless(t *testing.T) {
	for code, want := range map[string]bool{
		"22021": true, "23502": true, "42P01": true, // a value, a constraint, no such table
		"53100": false, "53300": false, "57P01": false, "40P01": false, "08006": false, // disk full, connections, shutdown, deadlock, cut
	} {
		if got := hopeless(fmt.Errorf("store: %w", &pgconn.PgError{Code: code})); got != want {
			t.Errorf("PostgreSQL's error %s: %v, want %v", code, got, want)
		}
	}
	if hopeless(io.ErrUnexpectedEOF) || hopeless(context.DeadlineExceeded) {
		t.Error("a connection that was cut is hopeless")
	}
}
