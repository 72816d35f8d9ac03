//go:build unix

package sidecar_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// While the store that two replicas share is frozen, and when it goes on, whichever of them takes a turn forwards the earlier
// ones as they were forwarded before: of conversations that began before that, meanwhile, and afterwards.
func TestReplicasAgreeWhileSharedStateIsFrozen(t *testing.T) {
	t.Run("fake", func(t *testing.T) {
		fake := miniredis.RunT(t)
		replicasAgree(t, fake.Addr(), fake.Lock, fake.Unlock)
	})
	t.Run("real", func(t *testing.T) {
		server, addr := startRedis(t)
		signal := func(s syscall.Signal) func() {
			return func() {
				if err := server.Signal(s); err != nil {
					t.Error(err)
				}
			}
		}
		replicasAgree(t, addr, signal(syscall.SIGSTOP), signal(syscall.SIGCONT))
	})
}

func replicasAgree(t *testing.T, store string, freeze, thaw func()) {
	t.Helper()
	const n = 30
	engine := newRecorder(t)
	replicas := [2]*replica{newReplica(t, engine.URL, store), newReplica(t, engine.URL, store)}
	moved := 0
	r := rand.New(rand.NewPCG(1, 2))
	begin := func() (talks []*dialogue) {
		for i := range n {
			d := &dialogue{r: r, last: i % 2}
			moved += d.turn(t, engine, replicas[d.last])
			talks = append(talks, d)
		}
		return talks
	}
	// next has each conversation go on with the other replica, and counts those whose earlier turns were forwarded as before.
	next := func(when string, talks []*dialogue) {
		t.Helper()
		same := 0
		for _, d := range talks {
			d.last = 1 - d.last
			before := commonFront(d.forwarded)
			d.turn(t, engine, replicas[d.last])
			if bytes.HasPrefix(d.forwarded, before) {
				same++
			}
		}
		t.Logf("%s: %d of %d", when, same, len(talks))
		if same != len(talks) {
			t.Errorf("%s: %d of %d turns began with what was forwarded before", when, same, len(talks))
		}
	}
	old := begin()
	if moved < n/2 {
		t.Fatalf("the documents of %d of %d conversations were moved: this shows nothing", moved, n)
	}
	for _, r := range replicas {
		await(t, "orders are read ahead", func() bool { return metric(t, r.metrics, "ragpilot_shared_state_read_ahead", "") >= 2*n })
	}
	freeze()
	next("begun before, while it is frozen", old)
	young := begin()
	next("begun while it is frozen", young)
	late := begin()
	thaw()
	next("begun before, when it goes on", old)
	next("begun while it was frozen, when it goes on", young)
	next("begun while it was frozen, and asked again when it goes on", late)
	next("begun when it goes on", begin())
}

// replica is a sidecar of its own.
type replica struct {
	url     string
	metrics *prometheus.Registry
}

func newReplica(t *testing.T, engine, store string) *replica {
	t.Helper()
	cfg := settings.Default()
	cfg.Compat = true // tool results have orders then, too
	cfg.InferAPIURL, cfg.SharedState = engine, settings.Secret("redis://"+store+"?budget=100ms")
	r := &replica{metrics: prometheus.NewRegistry()}
	api, err := sidecar.New(cfg, sidecar.Options{Registry: r.metrics, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api)
	r.url = server.URL
	t.Cleanup(func() {
		server.Close()
		if err := api.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// dialogue is a conversation with documents in front, and more of them in a tool's result.
type dialogue struct {
	r         *rand.Rand
	last      int // the replica that had the last turn
	messages  []object
	forwarded []byte
}

// turn asks once more, and returns 1 if the documents were not forwarded as they came.
func (d *dialogue) turn(t *testing.T, engine *recorder, r *replica) int {
	t.Helper()
	if d.messages == nil {
		d.messages = []object{{"role": "system", "content": "Answer from these.\n" + d.documents(10)}}
	}
	n := len(d.messages)
	id := fmt.Sprint("call ", n)
	d.messages = append(
		d.messages,
		object{"role": "user", "content": fmt.Sprint("question ", n)},
		object{
			"role":       "assistant",
			"tool_calls": []object{{"id": id, "type": "function", "function": object{"name": "search", "arguments": "{}"}}},
		},
		object{"role": "tool", "tool_call_id": id, "content": d.documents(4)},
	)
	body, err := json.Marshal(object{"model": "m", "messages": d.messages})
	if err != nil {
		t.Fatal(err)
	}
	ask(t, r.url+"/v1/chat/completions", body)
	d.forwarded = engine.last()
	if bytes.Contains(d.forwarded, body[:len(body)-2]) {
		return 0
	}
	return 1
}

// documents are some of two dozen, in whatever order they were found.
func (d *dialogue) documents(n int) string {
	var b strings.Builder
	b.WriteString("<documents>\n")
	for _, i := range d.r.Perm(24)[:n] {
		fmt.Fprintf(&b, "<document>document %d: %s</document>\n", i, strings.Repeat("it says what it says ", 20))
	}
	b.WriteString("</documents>")
	return b.String()
}

// startRedis starts a server that keeps nothing on disk. Without a program the test is skipped.
func startRedis(t *testing.T) (server *os.Process, addr string) {
	t.Helper()
	command, addr := testkit.Redis(t)
	cmd := exec.CommandContext(context.Background(), command[0], command[1:]...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	await(t, "the server accepts connections", func() bool {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
	return cmd.Process, addr
}
