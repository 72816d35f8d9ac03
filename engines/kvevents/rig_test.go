package kvevents_test

import (
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
	sub := testkit.Must(kvevents.New(cfg))(t)
	testkit.Run(t, sub.Run)
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
	for end := time.Now().Add(time.Minute); !ok(); {
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
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
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
