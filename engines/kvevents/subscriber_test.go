package kvevents_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/internal/testkit/kvfake"
)

// tape is a sink that notes what it gets: the first hash of each batch, and what else happened.
type tape struct {
	mu       sync.Mutex
	lines    []string
	complete bool
	wrong    bool
	slow     chan struct{} // if not nil, Apply takes one from it
}

func (s *tape) Apply(b *kvevents.Batch) {
	if s.slow != nil {
		<-s.slow
	}
	line := "empty"
	if len(b.Events) > 0 {
		line = b.Events[0].Kind.String()
		if len(b.Events[0].Hashes) > 0 {
			line = b.Events[0].Hashes[0].String()
		}
	}
	s.note(line)
}

func (s *tape) Clear(c kvevents.Cause) { s.note("clear:" + strings.ReplaceAll(c.String(), " ", "-")) }

func (s *tape) Complete(ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complete = ok
}

func (s *tape) Inconsistent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	wrong := s.wrong
	s.wrong = false
	return wrong
}

func (s *tape) note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
}

// since returns what was noted since the last clearing, and whether it is complete.
func (s *tape) since() (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := strings.Join(s.lines, " ")
	if i := strings.LastIndex(all, "clear:"); i >= 0 {
		all = all[i:]
		all = all[strings.IndexByte(all+" ", ' '):]
		all = strings.TrimLeft(all, " ")
	}
	return all, s.complete
}

func (s *tape) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, " ")
}

// rig is a fake engine and a subscriber that follows it.
type rig struct {
	t                *testing.T
	engine           *kvfake.Engine
	sink             *tape
	sub              *kvevents.Subscriber
	endpoint, replay string
}

// freePort returns a loopback endpoint without a listener.
func freePort(t *testing.T) string {
	t.Helper()
	return "tcp://" + testkit.FreeAddress(t)
}

func socketFile(t *testing.T, name string) string {
	t.Helper()
	return "ipc://" + filepath.Join(t.TempDir(), name)
}

// newRig starts both; change may alter the configuration and the engine before.
func newRig(t *testing.T, change func(*kvevents.Config, *kvfake.Engine)) *rig {
	t.Helper()
	r := &rig{t: t, engine: &kvfake.Engine{Topic: "kv@a@m"}, sink: &tape{}, endpoint: socketFile(t, "events"), replay: socketFile(t, "replay")}
	cfg := kvevents.Config{
		Sources: []kvevents.Source{{Name: "r0", Endpoint: r.endpoint, Replay: r.replay}},
		Sink:    func(kvevents.Publisher) kvevents.Sink { return r.sink },
		Probe:   -1, Timeout: 2 * time.Second, Backoff: 5 * time.Millisecond, MaxBackoff: 20 * time.Millisecond,
	}
	if change != nil {
		change(&cfg, r.engine)
	}
	r.endpoint, r.replay = cfg.Sources[0].Endpoint, cfg.Sources[0].Replay
	r.start()
	t.Cleanup(func() { r.engine.Stop() })
	r.sub = run(t, cfg)
	r.await("a subscription", r.engine.Subscribers)
	return r
}

// run runs a subscriber until the test ends.
func run(t *testing.T, cfg kvevents.Config) *kvevents.Subscriber {
	t.Helper()
	sub, err := kvevents.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- sub.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return sub
}

func (r *rig) start() {
	r.t.Helper()
	if err := r.engine.Start(r.endpoint, r.replay); err != nil {
		r.t.Fatal(err)
	}
}

// restart replaces the engine by a new process.
func (r *rig) restart() {
	r.t.Helper()
	r.engine.Stop()
	r.engine = &kvfake.Engine{Topic: r.engine.Topic}
	r.start()
	r.await("a subscription", r.engine.Subscribers)
}

func (r *rig) await(what string, ok func() bool) {
	r.t.Helper()
	await(r.t, what, ok)
}

// await polls, with a bound that only a hang reaches.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func (r *rig) status() kvevents.Status {
	if all := r.sub.Status(); len(all) > 0 {
		return all[0]
	}
	return kvevents.Status{}
}

// expect waits until the sink holds exactly this since it was last cleared.
func (r *rig) expect(want string, complete bool) {
	r.t.Helper()
	var got string
	var ok bool
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if got, ok = r.sink.since(); got == want && ok == complete {
			return
		}
	}
	r.t.Fatalf("%q, complete %v; want %q, %v\nall: %s\n%+v", got, ok, want, complete, r.sink.all(), r.status())
}

// payload is a batch that removes block n: enough to differ from others.
func payload(n int) []byte {
	return kvfake.Payload(kvfake.Map, float64(n), 0, kvevents.Event{Kind: kvevents.Removed, Hashes: []kvevents.Hash{kvevents.Uint(uint64(n))}})
}

func (r *rig) publish(ns ...int) {
	for _, n := range ns {
		r.engine.Publish(payload(n))
	}
}

func TestFollowsAnEngine(t *testing.T) {
	for name, change := range map[string]func(*kvevents.Config, *kvfake.Engine){
		"ipc": nil,
		"tcp": func(c *kvevents.Config, _ *kvfake.Engine) {
			c.Sources[0].Endpoint, c.Sources[0].Replay = freePort(t), freePort(t)
		},
		"old replay": func(_ *kvevents.Config, e *kvfake.Engine) { e.OldReplay = true },
		"by topic":   func(c *kvevents.Config, _ *kvfake.Engine) { c.Sources[0].Topic = "kv@" },
		"no topic":   func(_ *kvevents.Config, e *kvfake.Engine) { e.Topic = "" },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, change)
			r.publish(1, 2, 3)
			r.expect("1 2 3", true)
			r.await("the live messages", func() bool { return r.status().Messages == 3 })
			s := r.status()
			if !s.Connected || s.Batches != 3 || s.Gaps+s.BadFrames+s.DecodeErrors > 0 || s.LastSeq != 2 || len(s.Windows) != 1 ||
				s.Windows[0].Cause != kvevents.Starting || s.PublishedTopic != r.engine.Topic {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestHistoryBeforeUs(t *testing.T) {
	r := newRig(t, func(_ *kvevents.Config, e *kvfake.Engine) {
		for n := 1; n <= 5; n++ {
			e.Buffer(payload(n))
		}
	})
	r.expect("1 2 3 4 5", true)
	r.publish(6)
	r.expect("1 2 3 4 5 6", true)
}

func TestHistoryBeyondTheBuffer(t *testing.T) {
	r := newRig(t, func(_ *kvevents.Config, e *kvfake.Engine) {
		for n := 1; n <= 5; n++ {
			e.Buffer(payload(n))
		}
		e.Forget(2)
	})
	r.expect("3 4 5", false)
	r.publish(6)
	r.expect("3 4 5 6", false)
	s := r.status()
	if len(s.Windows) != 1 || s.Windows[0].Missing != 2 || s.Holes != 2 {
		t.Errorf("%+v", s)
	}
	r.engine.Publish(kvfake.Payload(kvfake.Array, 1, 0, kvevents.Event{Kind: kvevents.Cleared}))
	r.expect("3 4 5 6 cleared", true) // from here on all is known
	if w := r.status().Windows[0]; w.Until.IsZero() || w.Length(time.Now()) <= 0 {
		t.Errorf("%+v", w)
	}
}

// TestFirstEventClears: a fresh SGLang cache says first that it is empty. That is no restart.
func TestFirstEventClears(t *testing.T) {
	r := newRig(t, nil)
	r.engine.Publish(kvfake.Payload(kvfake.Map, 1, 0, kvevents.Event{Kind: kvevents.Cleared},
		kvevents.Event{Kind: kvevents.Stored, Hashes: []kvevents.Hash{kvevents.Int(-1)}, BlockSize: 2}))
	r.publish(2)
	r.expect("cleared 2", true)
	if s := r.status(); s.Restarts+s.Clears > 0 {
		t.Errorf("%+v", s)
	}
}

func TestGapIsReplayed(t *testing.T) {
	r := newRig(t, nil)
	r.publish(1)
	r.expect("1", true)
	r.engine.Buffer(payload(2))
	r.engine.Buffer(payload(3))
	r.publish(4, 5)
	r.expect("1 2 3 4 5", true)
	if s := r.status(); s.Gaps != 1 || s.Missing != 2 || s.Holes != 0 || s.Restarts != 0 {
		t.Errorf("%+v", s)
	}
}

func TestGapWithoutReplay(t *testing.T) {
	r := newRig(t, func(c *kvevents.Config, _ *kvfake.Engine) { c.Sources[0].Replay = "" })
	r.publish(1)
	r.expect("1", true)
	r.engine.Buffer(payload(2))
	r.publish(3, 4)
	r.expect("1 3 4", false)
	s := r.status()
	if s.Gaps != 1 || s.Holes != 1 || len(s.Windows) != 2 || s.Windows[1].Cause != kvevents.Gap || s.Windows[1].Missing != 1 {
		t.Errorf("%+v", s)
	}
}

// TestReplayWithHoles: replay leaves batches out without saying so, others each time.
func TestReplayWithHoles(t *testing.T) {
	r := newRig(t, func(_ *kvevents.Config, e *kvfake.Engine) {
		for n := range 200 {
			e.Buffer(payload(n))
		}
		e.Skip = func(request int, seq uint64) bool { return seq%5 == uint64(request%5) && seq > 3 }
	})
	var want []string
	for n := range 200 {
		want = append(want, fmt.Sprint(n))
	}
	r.expect(strings.Join(want, " "), true)
	if s := r.status(); s.Holes > 0 || s.Replayed != 200 || s.Replays < 2 {
		t.Errorf("%+v", s)
	}
}

// TestReplayLeavesOutTheLatest: an answer that may have been cut off is not the end, and not said to be.
func TestReplayLeavesOutTheLatest(t *testing.T) {
	r := newRig(t, func(_ *kvevents.Config, e *kvfake.Engine) {
		for n := range 2000 {
			e.Buffer(payload(n))
		}
		e.Skip = func(request int, seq uint64) bool { return request == 1 && seq >= 1000 || request == 2 && seq >= 1950 }
	})
	var want []string
	for n := range 2000 {
		want = append(want, fmt.Sprint(n))
	}
	r.expect(strings.Join(want, " "), true)
	if s := r.status(); s.Holes > 0 || len(s.Windows) != 1 || s.Replays != 3 {
		t.Errorf("%d holes, windows %+v, %d replays", s.Holes, s.Windows, s.Replays)
	}
}

// TestReplayFillsHolesOneByOne: each answer that brings something new is a reason to go on asking.
func TestReplayFillsHolesOneByOne(t *testing.T) {
	r := newRig(t, func(_ *kvevents.Config, e *kvfake.Engine) {
		for n := range 12 {
			e.Buffer(payload(n))
		}
		e.Skip = func(request int, seq uint64) bool {
			return request <= 2 && seq == 5 || request <= 4 && seq == 8 || request <= 6 && seq == 10
		}
	})
	r.expect("0 1 2 3 4 5 6 7 8 9 10 11", true)
	if s := r.status(); s.Holes != 0 || s.Replays != 7 {
		t.Errorf("%+v", s)
	}
}

// TestReplayWithALastingHole: asking again is bounded.
func TestReplayWithALastingHole(t *testing.T) {
	r := newRig(t, func(_ *kvevents.Config, e *kvfake.Engine) {
		for n := range 10 {
			e.Buffer(payload(n))
		}
		e.Skip = func(_ int, seq uint64) bool { return seq == 4 || seq == 7 }
	})
	r.expect("0 1 2 3 5 6 8 9", false)
	if s := r.status(); s.Holes != 2 || s.Replays > 6 || s.Windows[0].Missing != 2 {
		t.Errorf("%+v", s)
	}
}

func TestReplayWithoutAnswer(t *testing.T) {
	r := newRig(t, func(c *kvevents.Config, e *kvfake.Engine) {
		c.Timeout = 50 * time.Millisecond
		e.Mute = func(request int) bool { return request <= 4 }
		e.Buffer(payload(0))
	})
	r.publish(1)
	r.expect("0 1", true) // twice at the connection, twice for the gap, and then it answers
	s := r.status()
	if s.Failed != 4 || s.Resyncs != 1 || s.Holes != 1 || r.sink.all() != "1 clear:resyncing 0 1" {
		t.Errorf("%s %+v", r.sink.all(), s)
	}
	r.engine.Buffer(payload(2))
	r.publish(3)
	r.expect("0 1 2 3", true)
}

// TestReplayNeverAnswers: what comes live is used all the same.
func TestReplayNeverAnswers(t *testing.T) {
	r := newRig(t, func(c *kvevents.Config, e *kvfake.Engine) {
		c.Timeout = 20 * time.Millisecond
		e.Mute = func(int) bool { return true }
		e.Buffer(payload(0))
	})
	r.publish(1, 2)
	r.expect("1 2", false)
	r.await("an error", func() bool { return r.status().Err != nil })
}

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
	for name, c := range map[string]struct{ replay, metrics bool }{"by replay": {true, false}, "by the start time": {false, true},
		"by both": {true, true}} {
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

func TestBadMessages(t *testing.T) {
	r := newRig(t, nil)
	r.publish(1)
	r.engine.Frames([]byte(r.engine.Topic), []byte{1, 2}, payload(5))
	r.engine.Frames([]byte(r.engine.Topic))
	r.engine.Frames([]byte(r.engine.Topic), make([]byte, 8), payload(5), nil)
	r.engine.Frames([]byte("other"), make([]byte, 8), payload(6))
	r.publish(2)
	r.expect("1 2", true)
	r.await("all of them", func() bool { s := r.status(); return s.BadFrames == 3 && s.WrongTopic == 1 })
}

func TestUndecodable(t *testing.T) {
	r := newRig(t, nil)
	r.publish(1)
	r.expect("1", true)
	whole := payload(2)
	r.engine.Send(r.engine.Buffer(whole), whole[:len(whole)-2]) // broken on its way: replay has it whole
	r.publish(3)
	r.expect("1 2 3", true)
	r.engine.Publish([]byte("no batch"))
	r.publish(5)
	r.expect("1 2 3 5", false)
	s := r.status()
	if s.DecodeErrors < 2 || s.Holes != 1 || s.Windows[len(s.Windows)-1].Cause != kvevents.Undecodable {
		t.Errorf("%+v", s)
	}
}

func TestMalformedEvent(t *testing.T) {
	r := newRig(t, nil)
	r.engine.Publish(object(t, list{1.0, list{list{"BlockRemoved", "x"}, list{"BlockRemoved", list{2}}, list{"BlockAdmired"}}, 0}))
	r.expect("2", false)
	if s := r.status(); s.Malformed != 1 || s.UnknownEvents != 1 || s.Holes != 0 {
		t.Errorf("%+v", s)
	}
}

func TestWrongRank(t *testing.T) {
	r := newRig(t, nil)
	other := kvfake.Payload(kvfake.Map, 1, 3, kvevents.Event{Kind: kvevents.Removed, Hashes: []kvevents.Hash{kvevents.Uint(99)}})
	r.publish(1, 2)
	r.expect("1 2", true)
	for _, seq := range []uint64{0, 2, 7} {
		r.engine.Send(seq, other)
	}
	r.publish(3, 4)
	r.expect("1 2 3 4", true)
	r.await("the live messages", func() bool { return r.status().Messages == 7 })
	if s := r.status(); s.WrongRank != 3 || s.Restarts != 0 || s.Holes != 0 {
		t.Errorf("%+v", s)
	}
}

func TestDuplicatesAndDisorder(t *testing.T) {
	for name, replay := range map[string]bool{"with replay": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *kvevents.Config, _ *kvfake.Engine) {
				if !replay {
					c.Sources[0].Replay = ""
				}
			})
			r.publish(1)
			r.engine.Send(0, payload(1))
			two := r.engine.Buffer(payload(2))
			r.publish(3)
			r.engine.Send(two, payload(2))
			r.publish(4)
			if replay {
				r.expect("1 2 3 4", true)
			} else {
				r.expect("1 3 4", false)
			}
			r.await("all messages", func() bool { return r.status().Messages == 5 })
			s := r.status()
			if s.Restarts+s.Clears > 0 || !replay && (s.Duplicates != 1 || s.Late != 1) || s.Late > 0 && replay {
				t.Errorf("%+v", s)
			}
		})
	}
}

// overflown returns a rig whose sink has taken batch 0 of 60 and stands still, while most of the others were dropped, and what lets
// it go on.
func overflown(t *testing.T) (r *rig, resume func()) {
	t.Helper()
	release := make(chan struct{}, 1000)
	r = newRig(t, func(c *kvevents.Config, _ *kvfake.Engine) { c.Queue = 4 })
	r.publish(0)
	r.expect("0", true)
	r.sink.slow = release
	for n := 1; n < 60; n++ {
		r.publish(n)
	}
	r.await("an overflow", func() bool { return r.status().Overflows > 40 })
	return r, func() {
		for range 1000 {
			release <- struct{}{}
		}
	}
}

// TestSlowSink: the connection is read on whatever the sink does; what does not fit is asked for again.
func TestSlowSink(t *testing.T) {
	r, resume := overflown(t)
	s := r.status() // while the sink is still busy
	if last := s.Windows[len(s.Windows)-1]; s.Complete || last.Cause != kvevents.Overflow || !last.Until.IsZero() {
		t.Errorf("complete %v, latest window %+v; want one with the cause overflow", s.Complete, last)
	}
	resume()
	var want []string
	for n := range 60 {
		want = append(want, fmt.Sprint(n))
	}
	r.expect(strings.Join(want, " "), true)
}

// TestOverflowForgotten: what was dropped last, and the engine has forgotten, is known to be missing.
func TestOverflowForgotten(t *testing.T) {
	r, resume := overflown(t)
	r.engine.Forget(60)
	asked := r.status().Replays
	resume()
	r.await("the question for what was dropped", func() bool { return r.status().Replays > asked })
	r.await("the sink's knowing", func() bool { _, complete := r.sink.since(); return !complete })
	if s := r.status(); s.Complete {
		t.Errorf("complete at number %d of 59", s.LastSeq)
	}
}

// TestUnbelievedNumber: a message whose number replay knows nothing of, which may have forgotten it, leaves the picture incomplete.
func TestUnbelievedNumber(t *testing.T) {
	r := newRig(t, nil)
	r.publish(1, 2)
	r.expect("1 2", true)
	r.engine.Forget(100)
	r.engine.Send(9, payload(9))
	r.expect("1 2", false)
	r.engine.Send(2, payload(3)) // the one that comes next
	r.expect("1 2 3", true)
}

// TestInconsistentSink: the history is asked for once more if the sink says that batches do not fit each other.
func TestInconsistentSink(t *testing.T) {
	r := newRig(t, nil)
	r.publish(1, 2)
	r.expect("1 2", true)
	r.sink.mu.Lock()
	r.sink.wrong = true
	r.sink.mu.Unlock()
	r.publish(3)
	r.await("a resync", func() bool { return r.status().Resyncs == 1 })
	r.expect("1 2 3", true)
	r.sub.Resync("r0")
	r.await("another", func() bool { return r.status().Resyncs == 2 })
	r.expect("1 2 3", true)
}

// TestSilentStream: an engine that connects instead of listening has batches for replay only.
func TestSilentStream(t *testing.T) {
	r := newRig(t, func(c *kvevents.Config, _ *kvfake.Engine) { c.Probe = 20 * time.Millisecond })
	r.expect("", true)
	r.engine.Buffer(payload(1))
	r.expect("1", true)
	r.await("a hint", func() bool { return r.status().Hint != "" && r.status().Found == 1 })
	r.publish(2)
	r.await("a live message", func() bool { return r.status().Messages == 1 })
	if hint := r.status().Hint; hint != "" {
		t.Errorf("the live stream has messages, and the hint is %q", hint)
	}
}

func TestEnginesThatConnect(t *testing.T) {
	for name, endpoint := range map[string]string{"tcp": freePort(t), "ipc": socketFile(t, "listen")} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			tapes := map[string]*tape{}
			replays := map[string]string{"kv@a@m": freePort(t), "kv@b@m": freePort(t)}
			sub := run(t, kvevents.Config{
				Sources: []kvevents.Source{{Name: "all", Endpoint: endpoint, Listen: true, Topic: "kv@"}},
				Sink: func(p kvevents.Publisher) kvevents.Sink {
					mu.Lock()
					defer mu.Unlock()
					tapes[p.Topic] = &tape{}
					return tapes[p.Topic]
				},
				ReplayEndpoint: func(p kvevents.Publisher) string { return replays[p.Topic] },
				Probe:          -1,
			})
			a, b := connect(t, "kv@a@m", endpoint, replays["kv@a@m"]), connect(t, "kv@b@m", endpoint, replays["kv@b@m"])
			for n := range 20 { // their numbers interleave
				a.Publish(payload(100 + n))
				b.Publish(payload(200 + n))
			}
			for topic, first := range map[string]int{"kv@a@m": 100, "kv@b@m": 200} {
				var want []string
				for n := range 20 {
					want = append(want, fmt.Sprint(first+n))
				}
				await(t, topic, func() bool {
					mu.Lock()
					defer mu.Unlock()
					if tapes[topic] == nil {
						return false
					}
					got, ok := tapes[topic].since()
					return ok && got == strings.Join(want, " ")
				})
			}
			// A second engine under a topic in use takes it over, and the first one is reported.
			c := connect(t, "kv@a@m", endpoint, "")
			c.Publish(payload(300))
			await(t, "the takeover", func() bool {
				a.Publish(payload(301))
				for _, s := range sub.Status() {
					if s.Topic == "kv@a@m" && s.Clashes > 0 && s.Hint != "" {
						return true
					}
				}
				return false
			})
			// When that one has gone, the first, whose connection still stands, is followed again.
			c.Stop()
			await(t, "the first one's return", func() bool {
				a.Publish(payload(302))
				mu.Lock()
				defer mu.Unlock()
				got, _ := tapes["kv@a@m"].since()
				return strings.HasSuffix(got, " 302 302")
			})
		})
	}
}

// TestReplayOfAnother: where engines connect, and the replay endpoint of one of them is known, the others are not given its batches.
func TestReplayOfAnother(t *testing.T) {
	for name, old := range map[string]bool{"answers with topics": false, "old answers": true} {
		t.Run(name, func(t *testing.T) {
			endpoint, replay := freePort(t), freePort(t)
			tapes := map[string]*tape{"kv@a": {}, "kv@b": {}}
			sub := run(t, kvevents.Config{
				Sources: []kvevents.Source{{Name: "all", Endpoint: endpoint, Listen: true, Replay: replay}},
				Sink:    func(p kvevents.Publisher) kvevents.Sink { return tapes[p.Topic] },
				Probe:   -1,
			})
			expect := func(topic, want string, complete bool) {
				t.Helper()
				await(t, fmt.Sprintf("%s: %q", topic, want), func() bool {
					got, ok := tapes[topic].since()
					return got == want && ok == complete
				})
			}
			a := &kvfake.Engine{Topic: "kv@a", OldReplay: old}
			a.Buffer(payload(100)) // while it was alone and unknown
			if err := a.Connect(endpoint, replay); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(a.Stop)
			await(t, "a subscription", a.Subscribers)
			a.Publish(payload(101))
			a.Publish(payload(102))
			expect("kv@a", "100 101 102", true)

			b := connect(t, "kv@b", endpoint, "")
			for n := range 5 {
				b.Buffer(payload(200 + n))
			}
			for n := range 10 {
				b.Publish(payload(300 + n))
			}
			expect("kv@b", "300 301 302 303 304 305 306 307 308 309", false)

			a.Buffer(payload(103))
			a.Publish(payload(104))
			if old {
				expect("kv@a", "100 101 102 104", false) // it cannot be known whose answer that would be
			} else {
				expect("kv@a", "100 101 102 103 104", true)
			}
			for _, s := range sub.Status() {
				if s.Restarts+s.Clears > 0 || (s.Hint != "") != (old || s.Topic == "kv@b") {
					t.Errorf("%+v", s)
				}
			}
			if n := a.Asked(); n > 15 {
				t.Errorf("%d questions", n)
			}
		})
	}
}

// TestProbeAmongSeveral: an engine that has nothing new says so for itself, though others connect beside it.
func TestProbeAmongSeveral(t *testing.T) {
	endpoint, replay := freePort(t), freePort(t)
	sub := run(t, kvevents.Config{
		Sources: []kvevents.Source{{Name: "all", Endpoint: endpoint, Listen: true, Replay: replay}},
		Sink:    func(kvevents.Publisher) kvevents.Sink { return &tape{} },
		Probe:   10 * time.Millisecond,
	})
	b := connect(t, "kv@b", endpoint, "")
	b.Publish(payload(200))
	await(t, "the other", func() bool { return len(sub.Status()) == 1 })
	a := connect(t, "kv@a", endpoint, replay)
	a.Publish(payload(100))
	own := func() kvevents.Status {
		list := sub.Status()
		return list[len(list)-1]
	}
	await(t, "some probes", func() bool { return own().Topic == "kv@a" && own().Replays > 5 })
	if s := own(); s.Failed > 0 || s.Err != nil || s.Hint != "" || s.Replayed > 1 || !s.Complete {
		t.Errorf("%+v", s)
	}
}

func connect(t *testing.T, topic, endpoint, replay string) *kvfake.Engine {
	t.Helper()
	e := &kvfake.Engine{Topic: topic}
	if err := e.Connect(endpoint, replay); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	await(t, "a subscription", e.Subscribers)
	return e
}

// TestPublishersAreBounded: engines come and go, and those that have gone make room.
func TestPublishersAreBounded(t *testing.T) {
	endpoint := freePort(t)
	sub := run(t, kvevents.Config{
		Sources: []kvevents.Source{{Name: "all", Endpoint: endpoint, Listen: true}}, MaxPublishers: 2, Probe: -1,
		Sink: func(kvevents.Publisher) kvevents.Sink { return &tape{} },
	})
	for i := range 5 {
		e := &kvfake.Engine{Topic: fmt.Sprint("kv@", i)}
		if err := e.Connect(endpoint, ""); err != nil {
			t.Fatal(err)
		}
		await(t, "a subscription", e.Subscribers)
		e.Publish(payload(1))
		await(t, e.Topic, func() bool {
			all := sub.Status()
			return len(all) > 0 && all[len(all)-1].Topic == e.Topic && all[len(all)-1].Batches == 1
		})
		e.Stop()
		await(t, "its end", func() bool {
			all := sub.Status()
			return !all[len(all)-1].Connected
		})
		if n := len(sub.Status()); n > 2 {
			t.Fatalf("%d publishers", n)
		}
	}
}
