//go:build linux

package faulttest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/upstream"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// TestUpstreamKilled: an engine that is killed breaks the answers that run, for clients to see, and nothing else. When
// it is back, so is the sidecar.
func TestUpstreamKilled(t *testing.T) {
	faults(t)
	for name, start := range map[string]func(*testing.T, string, string, ...string) *sidecar{"HTTP 1": serve, "HTTP 2": serveTLS} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr, record := testkit.FreeAddress(t), filepath.Join(t.TempDir(), "record")
			up := launchEngine(t, record, addr, "20ms")
			s := start(t, "http://"+addr, "")
			before := s.atRest(t, nil)

			const streams, whole = 8, 4
			var group sync.WaitGroup
			replies := make([]reply, streams+whole)
			var running sync.WaitGroup
			running.Add(streams)
			for i := range replies {
				q := wholeChat(2000) // for 40 s
				seen := func([]byte) {}
				if i < streams {
					q = streamChat(2000)
					once := sync.OnceFunc(running.Done)
					seen = func(body []byte) {
						if bytes.Count(body, []byte("\n\n")) >= 3 {
							once()
						}
					}
				}
				group.Go(func() { replies[i] = s.sendWatched(t.Context(), q, seen) })
			}
			running.Wait()
			eventually(t, "all requests with the engine", func() bool { return len(recorded(t, record)) >= streams+whole+1 })
			up.kill()
			group.Wait()
			for i, r := range replies {
				switch {
				case i < streams && (r.code != http.StatusOK || r.err == nil || r.ended()):
					t.Errorf("a stream that was cut looks like %v", r)
				case i >= streams && (r.code != http.StatusBadGateway || r.err != nil):
					t.Errorf("an answer that never came: %v", r)
				}
			}
			if r := s.send(t, wholeChat(1)); r.code != http.StatusBadGateway {
				t.Errorf("without an engine: %v", r)
			}

			up = launchEngine(t, record, addr, "1ms")
			for range 5 {
				s.alive(t)
				if r := s.send(t, streamChat(5)); r.code != http.StatusOK || r.err != nil || !r.ended() {
					t.Errorf("after the engine came back: %v", r)
				}
			}
			s.recovered(t, nil, before)
			up.kill()
			s.ledger.account(t, recorded(t, record), false)
		})
	}
}

// TestSidecarKilled: conversations go on with a sidecar that was killed in the middle of their answers and knows
// nothing of them. All references are still true and no document is lost; with a state folder, what was forwarded before
// is forwarded again byte for byte.
func TestSidecarKilled(t *testing.T) {
	faults(t)
	for name, state := range map[string]string{"no state": "", "state folder": filepath.Join(t.TempDir(), "state")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := "limits: {sessions: 1000}"
			if state != "" {
				settings = "state_dir: " + state
			}
			e := newEngine(t, upstream.Options{TokenDelay: time.Millisecond})
			s := serve(t, e.URL, settings)
			talks := make([]*conversation, 12)
			for i := range talks {
				talks[i] = newConversation(i)
			}
			const turns = 9
			kills := 0
			for turn := range turns {
				if turn%3 == 2 { // with all answers under way
					s = s.killedAndBack(t, e, settings, talks)
					kills++
				}
				all(talks, func(c *conversation) { c.say(t, s, turn) })
			}
			before := s.atRest(t, e)
			s.recovered(t, e, before)

			arrivals := e.arrivals(t)
			s.ledger.account(t, arrivals, false) // some answers were cut: clients have less than was said
			replaced, changed := steady(talks, arrivals)
			t.Logf("%d kills, %d requests upstream, %d notes in them; %d times were earlier bytes changed", kills, len(arrivals), replaced, changed)
			if replaced == 0 {
				t.Error("nothing was replaced: this test shows nothing")
			}
			if state != "" && changed > 0 {
				t.Errorf("with a state folder, %d times were earlier bytes changed", changed)
			}
		})
	}
}

// allButEnd is the part of a body with which the conversation's next one must begin.
func allButEnd(body []byte) []byte {
	return body[:max(bytes.LastIndex(body, []byte(`],"stream"`)), 0)]
}

func all(talks []*conversation, do func(*conversation)) {
	var group sync.WaitGroup
	for _, c := range talks {
		group.Go(func() { do(c) })
	}
	group.Wait()
}

// killedAndBack kills the sidecar while all conversations wait for long answers, and starts it again at its address.
func (s *sidecar) killedAndBack(t *testing.T, e *engine, settings string, talks []*conversation) *sidecar {
	t.Helper()
	var group, running sync.WaitGroup
	running.Add(len(talks))
	for _, c := range talks {
		once := sync.OnceFunc(running.Done)
		group.Go(func() {
			if r := s.sendWatched(t.Context(), c.request(true, 20_000), func([]byte) { once() }); r.err == nil {
				t.Errorf("complete, though the sidecar was killed: %.200v", r)
			}
			once()
		})
	}
	running.Wait()
	s.kill()
	group.Wait()
	next := serve(t, e.URL, settings, "--listen", s.addr)
	next.ledger = s.ledger
	return next
}

// conversation is an agent's, which reads documents and files again and again.
type conversation struct {
	n        int
	messages []message
	ids      []string // of the requests that were answered
}

func newConversation(n int) *conversation {
	c := &conversation{n: n}
	system := fmt.Sprintf("You are agent %d.", n) // a text of its own: the order of its documents is asked for anew
	if n%2 == 1 {
		system += "\n" + documents(n, n+1, n+5, n+2)
	}
	c.messages = []message{{Role: "system", Content: system}, {Role: "user", Content: fmt.Sprintf("Question %d: where is the fault?", n)}}
	return c
}

// say adds what the agent's tool returned, and sends everything.
func (c *conversation) say(t *testing.T, s *sidecar, turn int) {
	id := fmt.Sprintf("call_%d_%d", c.n, turn)
	name, content := "search", ""
	switch k := c.n + turn; turn % 4 {
	case 0:
		content = documents(k, k+3, k+1, k+7)
	case 1:
		name, content = "read", listing(k%5, 0, 80)
	case 2:
		content = documents(k-2, k+1, k-1, k+20)
	case 3:
		name, content = "read", listing((k-2)%5, 20, 70)
	}
	if turn == 7 { // what turn 5 gave
		name, content = "read", listing((c.n+5)%5, 0, 80)
	}
	c.messages = append(
		c.messages,
		message{
			Role:    "assistant",
			Content: fmt.Sprint("Step ", turn),
			Calls:   []toolCall{{ID: id, Type: "function", Function: function{name, "{}"}}},
		},
		message{Role: "tool", CallID: id, Content: content},
	)
	q := c.request(turn%2 == 0, 4)
	if r := s.send(t, q); r.code != http.StatusOK || r.err != nil {
		t.Errorf("turn %d: %v", turn, r)
	}
	c.ids = append(c.ids, q.id)
}

func (c *conversation) request(stream bool, tokens int) request {
	text, _ := json.Marshal(chatBody{Model: "m", Messages: c.messages, Stream: stream, Tokens: tokens, Seed: c.n}) // cannot fail
	return newRequest(chatPath, text)
}

// documents returns documents by their numbers, of which there are few.
func documents(numbers ...int) string {
	var b strings.Builder
	b.WriteString("<documents>\n")
	for _, n := range numbers {
		n = (n + 11) % 11
		fmt.Fprintf(&b, "<document>\nDocument %d is about case %d.\nIt says that %d holds.\n</document>\n", n, n*7, n*n%11)
	}
	return b.String() + "</documents>"
}

// listing returns lines of a file with their numbers.
func listing(file, from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "%6d|\tcase value%d.field%d == %d: return state%d.advance(%d)\n", i+1, file, i, i*7919%1009, i%13, file*i)
	}
	return b.String()
}
