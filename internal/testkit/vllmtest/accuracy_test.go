//go:build unix

package vllmtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// What is asked of predictions: within one block for 99 of 100 requests that are sent while the index says that it is complete,
// and evictions at the pilot within 100 ms.
const (
	rightShare   = 0.99
	evictionTime = 100 * time.Millisecond
)

// TestRealAccuracy sends requests to a server with a small cache through all that can go wrong, and compares what was predicted
// with what the server reports.
func TestRealAccuracy(t *testing.T) {
	python, model := needs(t, envTiny)
	for _, tt := range []struct {
		name   string
		replay bool
	}{{"replay", true}, {"no replay", false}} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, options{python: python, model: model, block: 32, blocks: 64, window: 1900, dtype: "float32", replay: tt.replay})
			relay := newRelay(t, s.events())
			a := &accuracy{lane: newLane(t, s, relay.endpoint()), relay: relay, from: newQuestions("p", 1), began: machineLoad()}
			a.evictions()
			a.paused()
			a.cut()
			a.killed()
			a.report("accuracy " + tt.name)
		})
	}
}

// accuracy is one run of the test.
type accuracy struct {
	*lane

	relay    *relay
	from     *questions
	outcomes []outcome
	began    string // load
}

// send sends requests, one after the other, and keeps what came of them.
func (a *accuracy) send(phase string, n int) {
	a.t.Helper()
	for range n {
		a.outcomes = append(a.outcomes, a.ask(phase, a.from))
	}
}

// evictions fills the cache many times over.
func (a *accuracy) evictions() {
	a.until("connected", func() bool { return a.status().Connected })
	a.send("first", 2) // without replay, the first message shows that none was missed
	a.until("complete", a.complete)
	a.delay.measure(true)
	a.send("evictions", 150)
	time.Sleep(time.Second) // for the last events
	a.delay.measure(false)
}

// paused stops reading events, from a connection on that was made anew, while others use the server, until messages are dropped.
func (a *accuracy) paused() {
	before := a.status()
	a.relay.cut()
	a.until("not connected", func() bool { return !a.status().Connected })
	a.gate.shut(true)
	a.relay.mend()
	a.until("paused", a.gate.holds)
	a.others(10 * queue)
	a.gate.shut(false)
	if a.server.options.replay {
		a.recover("pause")
	} else {
		a.send("right after pause", 1) // its events show what is missing
		a.until("incomplete after a pause", func() bool { return !a.complete() })
		a.recover("pause")
	}
	if after := a.status(); after.Overflows == before.Overflows {
		a.t.Errorf("no message was dropped during the pause: %+v", after.Counters)
	}
}

// recover measures what is known after a fault. With replay, everything must be known again; without, that must be said, and
// the next reset of the cache must end it.
func (a *accuracy) recover(phase string) {
	a.t.Helper()
	if a.server.options.replay {
		a.until("complete again after "+phase, a.complete)
		a.send("after "+phase, 60)
		return
	}
	a.send("after "+phase, 20)
	if a.complete() {
		a.t.Errorf("after %s: the index says that it is complete, though nothing gave the lost messages back", phase)
	}
	a.reset()
	a.send("after reset", 1)
	a.until("complete again after a reset", a.complete)
	a.send("after "+phase+" and reset", 60)
}

// cut closes the connection for a while, during which requests are sent.
func (a *accuracy) cut() {
	a.relay.cut()
	a.until("not connected", func() bool { return !a.status().Connected })
	a.send("cut", 20)
	a.relay.mend()
	a.until("connected again", func() bool { return a.status().Connected })
	a.recover("cut")
}

// killed ends the server as kill -9 does and starts it again.
func (a *accuracy) killed() {
	before := a.status()
	a.server.kill()
	a.until("not connected", func() bool { return !a.status().Connected })
	if a.complete() {
		a.t.Error("the index says that it is complete while the server is dead")
	}
	a.server.start()
	// A server whose metrics are not there yet is not known to be another one: then the picture is cleared because it may be.
	a.until("connected to the new server", func() bool {
		now := a.status()
		return now.Connected && (now.Restarts > before.Restarts || now.Clears > before.Clears)
	})
	a.send("restarted", 2)
	a.until("complete after the restart", a.complete)
	a.send("after kill -9 and restart", 60)
}

// share is how many of some requests were predicted right.
type share struct {
	Phase    string `json:"phase"`
	Complete bool   `json:"complete"`
	Requests int    `json:"requests"`
	Exact    int    `json:"exact"`
	Within   int    `json:"within_one_block"`
	WorstOff int    `json:"worst_tokens_off"`
	Prompt   int    `json:"prompt_tokens"`
	Cached   int    `json:"cached_tokens"`
}

func (s *share) add(o outcome, block int) {
	s.Requests++
	s.Prompt += o.Prompt
	s.Cached += o.Cached
	s.WorstOff = max(s.WorstOff, o.off())
	if o.off() == 0 {
		s.Exact++
	}
	if o.off() <= block {
		s.Within++
	}
}

func (s *share) cells() []string {
	said := "incomplete"
	if s.Complete {
		said = "complete"
	}
	return []string{
		s.Phase, said, fmt.Sprint(s.Requests), fmt.Sprint(s.Exact),
		fmt.Sprintf("%d (%.1f %%)", s.Within, 100*float64(s.Within)/float64(max(s.Requests, 1))),
		fmt.Sprint(s.WorstOff), fmt.Sprint(s.Prompt), fmt.Sprint(s.Cached),
	}
}

// window is a time in which the index was not complete.
type window struct {
	Cause   string  `json:"cause"`
	Seconds float64 `json:"seconds"`
	Missing uint64  `json:"missing"` // messages, for good
	Open    bool    `json:"open"`    // it lasts
}

// summary is what the run came to.
type summary struct {
	Phases    []*share          `json:"phases"`
	Complete  share             `json:"while_complete"`
	Rest      share             `json:"while_incomplete"`
	Windows   []window          `json:"windows"`
	Counters  kvevents.Counters `json:"counters"`
	Evictions map[string]string `json:"eviction_to_pilot"`
	Observed  int64             `json:"pilot_events"`
	Unknown   int64             `json:"pilot_events_unknown"`
}

// report judges the run.
func (a *accuracy) report(name string) {
	var sum summary
	sum.Complete, sum.Rest = share{Phase: "all", Complete: true}, share{Phase: "all"}
	at := map[string]*share{}
	for _, o := range a.outcomes {
		key := fmt.Sprint(o.Phase, o.Complete)
		if at[key] == nil {
			at[key] = &share{Phase: o.Phase, Complete: o.Complete}
			sum.Phases = append(sum.Phases, at[key])
		}
		at[key].add(o, a.block)
		if o.Complete {
			sum.Complete.add(o, a.block)
		} else {
			sum.Rest.add(o, a.block)
		}
	}
	sum.windows(a)
	sum.evictions(a)
	st := a.pilot.Stats()
	sum.Observed, sum.Unknown = st.Events, st.EventsUnknown
	f := figures{Loads: []string{a.began, machineLoad()}, Release: a.engine.Features().Version, Values: sum, Table: sum.table()}
	f.report(a.t, name)
	sum.judge(a)
}

func (s *summary) windows(a *accuracy) {
	status := a.status()
	s.Counters = status.Counters
	for _, w := range status.Windows {
		s.Windows = append(
			s.Windows,
			window{Cause: w.Cause.String(), Seconds: w.Length(time.Now()).Seconds(), Missing: w.Missing, Open: w.Until.IsZero()},
		)
	}
}

func (s *summary) evictions(a *accuracy) {
	times := a.delay.times()
	s.Evictions = map[string]string{"events": fmt.Sprint(len(times))}
	for _, q := range []struct {
		name string
		at   float64
	}{{"median", 0.5}, {"90 %", 0.9}, {"99 %", 0.99}, {"longest", 1}} {
		if len(times) > 0 {
			s.Evictions[q.name] = times[min(int(q.at*float64(len(times))), len(times)-1)].Round(10 * time.Microsecond).String()
		}
	}
}

func (s *summary) table() string {
	var phases, windows table
	phases.row("phase", "the index says", "requests", "exact", "within one block", "worst off", "prompt tokens", "cached")
	for _, p := range s.Phases {
		phases.row(p.cells()...)
	}
	phases.row(s.Complete.cells()...)
	phases.row(s.Rest.cells()...)
	windows.row("incomplete", "because", "missing for good")
	for _, w := range s.Windows {
		length := fmt.Sprintf("%.3f s", w.Seconds)
		if w.Open {
			length += ", still"
		}
		windows.row(length, w.Cause, fmt.Sprint(w.Missing))
	}
	return fmt.Sprintf(
		"%s\n%s\nfrom the engine's event to the pilot: %v\nevents at the pilot: %d, of requests that it did not know: %d\nof the stream: %+v\n",
		phases.String(),
		windows.String(),
		s.Evictions,
		s.Observed,
		s.Unknown,
		s.Counters,
	)
}

// judge fails the test if the run was not as asked.
func (s *summary) judge(a *accuracy) {
	t := a.t
	if c := s.Complete; float64(c.Within) < rightShare*float64(c.Requests) || c.Requests < 200 {
		t.Errorf(
			"of %d requests sent while the index was complete, %d were predicted within one block: want %.0f %% of at least 200",
			c.Requests,
			c.Within,
			100*rightShare,
		)
	}
	times := a.delay.times()
	if len(times) < 100 {
		t.Errorf("only %d events that took blocks came to the pilot", len(times))
	}
	at, _ := slices.BinarySearch(times, evictionTime)
	if late := len(times) - at; float64(late) > (1-rightShare)*float64(len(times)) {
		t.Errorf(
			"%d of %d events that took blocks were %v or longer on their way to the pilot; load %s",
			late,
			len(times),
			evictionTime,
			machineLoad(),
		)
	}
	for _, w := range s.Windows {
		if w.Seconds <= 0 || w.Open {
			t.Errorf("a window without an end or a length: %+v", w)
		}
	}
	if len(s.Windows) < 3 {
		t.Errorf("%d windows of incompleteness, want one at least for the start, the cut and the kill", len(s.Windows))
	}
}
