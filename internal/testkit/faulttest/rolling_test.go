//go:build linux

package faulttest_test

import (
	"bytes"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/upstream"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// TestRollingDeploy: two replicas that share orders in Redis are replaced one after the other while conversations go on,
// each turn with whichever replica is next. Every turn is answered, once; every answer is complete; every reference is
// true; and what was forwarded for a conversation is forwarded again byte for byte, by whom ever. While Redis hangs, also
// for a replica that starts then, all of this holds but for the bytes, which may cost misses in the engine's cache.
func TestRollingDeploy(t *testing.T) {
	faults(t)
	for name, hangs := range map[string]bool{"Redis answers": false, "Redis hangs": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := launchRedis(t)
			e := newEngine(t, upstream.Options{TokenDelay: 20 * time.Millisecond})
			settings := "shared_state: redis://" + store.addr
			if !hangs { // a machine with much else to do may take longer than the 5 ms that an order is waited for
				settings += "?budget=500ms"
			}
			var replicas []*sidecar
			for range 2 {
				replicas = append(replicas, serve(t, e.URL, settings, "--listen", testkit.FreeAddress(t)))
			}
			f := newFront(t, replicas[0].addr, replicas[1].addr)
			c := newChatter(t, f.client(t), 12)
			defer c.stop()
			c.goOn(t, "with both replicas")

			inFlight := 0
			for i, s := range replicas {
				if hangs && i == 0 {
					store.signal(t, syscall.SIGSTOP)
					for _, s := range replicas {
						s.log.until(t, `msg="Redis does not answer`)
					}
					c.goOn(t, "while Redis hangs")
				}
				next, n := s.replaced(t, e.URL, settings)
				replicas[i], inFlight = next, inFlight+n
				c.goOn(t, "with the new replica")
			}
			if hangs {
				store.signal(t, syscall.SIGCONT)
				for _, s := range replicas {
					s.log.until(t, `msg="Redis answers again`)
				}
			}
			c.goOn(t, "in the end")
			talks := c.stop()

			arrivals := e.arrivals(t)
			c.client.ledger.account(t, arrivals, true)
			c.client.ledger.takenIsAnswered(t, arrivals)
			if sent := c.client.ledger.count(); len(arrivals) != sent {
				t.Errorf("%d requests were sent, %d came to the engine", sent, len(arrivals))
			}
			replaced, changed := steady(talks, arrivals)
			moved := f.changes(talks)
			t.Logf(
				"%d conversations, %d requests, %d times with another replica than the turn before, %d in flight when replicas were stopped, "+
					"%d asked again of the other, %d notes; %d times were earlier bytes changed",
				len(talks),
				len(arrivals),
				moved,
				inFlight,
				f.retried.Load(),
				replaced,
				changed,
			)
			if moved == 0 || replaced == 0 || inFlight == 0 {
				t.Error("this test shows nothing")
			}
			if !hangs && changed > 0 {
				t.Errorf("%d times were earlier bytes changed", changed)
			}
		})
	}
}

// replaced stops a replica, waits for its end, and starts another in its place. It returns how many requests were in
// flight.
func (s *sidecar) replaced(t *testing.T, upstream, settings string) (next *sidecar, inFlight int) {
	t.Helper()
	s.signal(t, syscall.SIGTERM)
	inFlight, _ = strconv.Atoi(s.log.until(t, `msg=draining requests=(\d+)`)[1]) // digits
	if code := s.exit(t); code != 0 {
		t.Errorf("exit status %d, want 0", code)
	}
	return serve(t, upstream, settings, "--listen", s.addr), inFlight
}

// steady counts the notes in what was forwarded, and how often a turn did not begin with what was forwarded for the one
// before.
func steady(talks []*conversation, arrivals []*arrival) (replaced, changed int) {
	forwarded := map[string][]byte{}
	for _, a := range arrivals {
		replaced += notes(a.Body)
		forwarded[a.ID] = a.Body
	}
	for _, c := range talks {
		for i := 1; i < len(c.ids); i++ {
			if !bytes.HasPrefix(forwarded[c.ids[i]], allButEnd(forwarded[c.ids[i-1]])) {
				changed++
			}
		}
	}
	return replaced, changed
}

// chatter is agents that hold one conversation after the other.
type chatter struct {
	client *sidecar
	count  atomic.Int64 // turns that have ended
	ending atomic.Bool
	agents sync.WaitGroup

	mu    sync.Mutex
	talks []*conversation // guarded by mu
}

// turnsOfTalk is how long a conversation is.
const turnsOfTalk = 9

func newChatter(t *testing.T, client *sidecar, agents int) *chatter {
	t.Helper()
	c := &chatter{client: client}
	for range agents {
		c.agents.Go(func() {
			for !c.ending.Load() && !t.Failed() {
				talk := c.begin()
				for turn := range turnsOfTalk {
					talk.say(t, client, turn)
					c.count.Add(1)
				}
			}
		})
	}
	return c
}

func (c *chatter) begin() *conversation {
	c.mu.Lock()
	defer c.mu.Unlock()
	talk := newConversation(len(c.talks))
	c.talks = append(c.talks, talk)
	return talk
}

// goOn waits for more turns: enough for all agents to have ended a conversation and begun another.
func (c *chatter) goOn(t *testing.T, when string) {
	t.Helper()
	to := c.count.Load() + 12*turnsOfTalk
	eventually(t, "answers "+when, func() bool { return c.count.Load() >= to || t.Failed() })
}

// stop waits until all conversations have come to their end, and returns them.
func (c *chatter) stop() []*conversation {
	c.ending.Store(true)
	c.agents.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.talks
}

// redisProcess is a Redis or Valkey server.
type redisProcess struct {
	*process
	addr string
}

// launchRedis starts a server that keeps nothing on disk, and waits until it listens. Without a program it skips.
func launchRedis(t *testing.T) *redisProcess {
	t.Helper()
	command, addr := testkit.Redis(t)
	p := launch(t, nil, command[0], command[1:]...)
	p.log.until(t, "[Rr]eady to accept connections")
	return &redisProcess{p, addr}
}
