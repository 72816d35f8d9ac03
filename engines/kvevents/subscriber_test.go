package kvevents_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/internal/testkit/kvfake"
)

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
