package kvevents_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/internal/testkit/kvfake"
)

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
