package kvevents_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// libzmq runs testdata/publisher.py and returns a function that gives it a line and waits until it is done.
func libzmq(t *testing.T, args ...string) func(format string, args ...any) {
	t.Helper()
	python := os.Getenv("RAGPILOT_PYZMQ")
	if python == "" {
		t.Skip("needs RAGPILOT_PYZMQ: a Python interpreter with pyzmq")
	}
	cmd := exec.CommandContext(t.Context(), python, append([]string{"testdata/publisher.py"}, args...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	lines.Scan()
	return func(format string, args ...any) {
		t.Helper()
		fmt.Fprintf(in, format+"\n", args...)
		if !lines.Scan() {
			t.Fatal("the publisher has ended")
		}
	}
}

// TestAgainstLibzmq: the sockets that engines use. With 9,000 batches buffered, their replay may leave some out.
func TestAgainstLibzmq(t *testing.T) {
	for _, shape := range []string{"old", "new"} {
		for _, mode := range []string{"bind", "connect"} {
			for _, count := range []int{0, 9000} {
				t.Run(fmt.Sprint(shape, "/", mode, "/", count), func(t *testing.T) {
					endpoint, replay := socketFile(t, "pub"), freePort(t)
					sink := &tape{}
					source := kvevents.Source{Name: "r", Endpoint: endpoint, Replay: replay, Listen: mode == "connect", Topic: "kv@"}
					cfg := kvevents.Config{Sources: []kvevents.Source{source}, Sink: func(kvevents.Publisher) kvevents.Sink { return sink }}
					var do func(string, ...any)
					var sub *kvevents.Subscriber
					if mode == "connect" { // the one that listens starts first
						sub = run(t, cfg)
						do = libzmq(t, endpoint, replay, mode, shape, fmt.Sprint(count))
					} else {
						do = libzmq(t, endpoint, replay, mode, shape, fmt.Sprint(count))
						sub = run(t, cfg)
					}
					last := func() (int, bool) {
						all, ok := sink.since()
						return len(strings.Fields(all)), ok
					}
					total := count
					await(t, "a live message", func() bool { // subscriptions take a moment
						do("send 1")
						total++
						s := sub.Status()
						return len(s) > 0 && s[0].Messages > 0
					})
					do("lose 5")
					do("send 2000")
					total += 2005
					await(t, "all batches", func() bool {
						n, ok := last()
						return ok && n == total
					})
					s := sub.Status()[0]
					if s.Holes > 0 || s.Restarts > 0 {
						t.Errorf("%+v", s)
					}
					t.Logf("%d batches, %d live, %d replays, %d gaps", s.Batches, s.Messages, s.Replays, s.Gaps)
					all, _ := sink.since()
					for i, word := range strings.Fields(all) {
						if word != fmt.Sprint(i) {
							t.Fatalf("batch %d is %s", i, word)
						}
					}
				})
			}
		}
	}
}
