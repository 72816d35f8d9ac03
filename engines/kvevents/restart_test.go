package kvevents_test

import (
	"context"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/internal/testkit/kvfake"
)

func TestRestart(t *testing.T) {
	for name, replay := range map[string]bool{"with replay": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *kvevents.Config, _ *kvfake.Engine) {
				if !replay {
					c.Sources[0].Replay = ""
				}
			})
			r.publish(1, 2, 3)
			r.expect("1 2 3", true)
			r.restart()
			r.publish(7, 8, 9, 10, 11) // further than before
			r.expect("7 8 9 10 11", true)
		})
	}
}

// TestRestartWithHigherNumbers: the new process has passed the old one's number before we are back.
func TestRestartWithHigherNumbers(t *testing.T) {
	r := newRig(t, nil)
	r.publish(1, 2)
	r.expect("1 2", true)
	r.engine.Stop()
	r.engine = &kvfake.Engine{Topic: "kv@a@m"}
	for n := 11; n < 16; n++ {
		r.engine.Buffer(payload(n))
	}
	r.start()
	r.expect("11 12 13 14 15", true)
	if s := r.status(); s.Restarts != 1 {
		t.Errorf("%+v", s)
	}
}

// TestRestartOnOneConnection: behind a proxy the connection stays.
func TestRestartOnOneConnection(t *testing.T) {
	r := newRig(t, func(c *kvevents.Config, _ *kvfake.Engine) { c.Sources[0].Replay = "" })
	r.publish(1, 2, 3)
	r.expect("1 2 3", true)
	r.engine.Send(0, payload(11))
	r.engine.Send(1, payload(12))
	r.expect("11 12", true)
	r.engine.Send(1, payload(21))
	r.expect("21", false)
	if s := r.status(); s.Restarts != 2 || !strings.Contains(r.sink.all(), "clear:restarted") {
		t.Errorf("%+v", s)
	}
}

// TestSameProcessAfterABreak: what was known stays.
func TestSameProcessAfterABreak(t *testing.T) {
	for name, c := range map[string]struct{ replay, metrics bool }{
		"by replay": {true, false}, "by the start time": {false, true},
		"by both": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(cfg *kvevents.Config, _ *kvfake.Engine) {
				if !c.replay {
					cfg.Sources[0].Replay = ""
				}
				if c.metrics {
					cfg.StartTime = func(context.Context, kvevents.Publisher) (float64, error) { return 1234.5, nil }
				}
			})
			r.publish(1, 2)
			r.expect("1 2", true)
			r.reconnect()
			r.publish(3)
			r.expect("1 2 3", true)
			if s := r.status(); s.Clears > 0 || s.Connects < 2 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// reconnect breaks the connection of the same process, which keeps its buffer and its numbers.
func (r *rig) reconnect() {
	r.t.Helper()
	before := r.status().Connects
	r.engine.Stop()
	r.engine.Reset()
	r.start()
	r.await("a subscription", r.engine.Subscribers)
	r.await("the connection", func() bool { return r.status().Connects > before })
}

// TestSameProcessAfterAnUndecodableBatch: an unreadable batch is known when it comes again.
func TestSameProcessAfterAnUndecodableBatch(t *testing.T) {
	r := newRig(t, nil)
	r.publish(1, 2)
	r.expect("1 2", true)
	r.engine.Publish([]byte("no batch"))
	r.await("the hole", func() bool { return r.status().Holes == 1 })
	r.reconnect()
	r.publish(3)
	r.expect("1 2 3", false)
	if s := r.status(); s.Restarts > 0 || s.Clears > 0 {
		t.Errorf("%+v", s)
	}
}

func TestAnotherStartTime(t *testing.T) {
	started := make(chan float64, 10)
	r := newRig(t, func(cfg *kvevents.Config, _ *kvfake.Engine) {
		cfg.Sources[0].Replay = ""
		cfg.StartTime = func(context.Context, kvevents.Publisher) (float64, error) { return <-started, nil }
		started <- 1
		started <- 2
	})
	r.publish(1, 2)
	r.expect("1 2", true)
	r.reconnect()
	r.expect("", false)
	r.publish(3)
	r.expect("3", false) // number 2
	if s := r.status(); s.Restarts != 1 || s.Windows[1].Cause != kvevents.Disconnected {
		t.Errorf("%+v", s)
	}
}

func TestNoEvidenceAfterABreak(t *testing.T) {
	r := newRig(t, func(c *kvevents.Config, _ *kvfake.Engine) { c.Sources[0].Replay = "" })
	r.publish(1, 2)
	r.expect("1 2", true)
	r.reconnect()
	r.publish(3)
	r.expect("3", false)
	if !strings.Contains(r.sink.all(), "clear:reconnected") {
		t.Error(r.sink.all())
	}
}
