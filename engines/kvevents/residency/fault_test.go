package residency_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
	"github.com/ragpilot/ragpilot/internal/testkit/kvfake"
)

var rigs int // made so far: each has sockets of its own

// rig is a model cache whose events go over ZeroMQ, with faults, to an index.
type rig struct {
	*cache
	t      *rapid.T
	engine *kvfake.Engine
	index  *residency.Index
	sub    *kvevents.Subscriber
	stop   func() error
	ids    int
	clock  float64

	endpoint, replay string
	sent             [][]byte // payloads by number, of this process
}

func newRig(t *rapid.T, dir string, replay bool) *rig {
	rigs++
	r := &rig{
		cache: newCache(), t: t, engine: &kvfake.Engine{}, index: residency.New(residency.Config{}),
		endpoint: fmt.Sprintf("ipc://%s/e%d", dir, rigs),
	}
	if replay {
		r.replay = fmt.Sprintf("ipc://%s/r%d", dir, rigs)
	}
	r.start()
	sub, err := kvevents.New(kvevents.Config{
		Sources: []kvevents.Source{{Name: "r", Endpoint: r.endpoint, Replay: r.replay}},
		Sink:    func(kvevents.Publisher) kvevents.Sink { return r.index },
		Probe:   -1, Timeout: 2 * time.Second, Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond, Resync: time.Microsecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- sub.Run(ctx) }()
	r.sub, r.stop = sub, func() error {
		cancel()
		return <-done
	}
	r.await("a subscription", r.engine.Subscribers)
	return r
}

func (r *rig) start() {
	if err := r.engine.Start(r.endpoint, r.replay); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) await(what string, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(200 * time.Microsecond) {
		if time.Now().After(end) {
			r.t.Fatalf("waited in vain for %s: %+v, %+v", what, r.sub.Status(), r.index.Stats())
		}
	}
}

// payload encodes what the cache did since the last call. The clock runs backwards: nothing depends on it but that two
// processes do not send the same bytes.
func (r *rig) payload() []byte {
	r.clock--
	p := kvfake.Payload(kvfake.Form(len(r.sent)%2), r.clock, 0, r.events...)
	r.events = nil
	r.sent = append(r.sent, p)
	return p
}

func (r *rig) publish() { r.engine.Publish(r.payload()) }

// settle waits until the last batch has been applied, and returns whether the index says that it knows everything.
func (r *rig) settle() bool {
	r.t.Helper()
	for range 2 { // the first may come by a replay that is not over yet
		r.publish()
		last := uint64(len(r.sent) - 1)
		r.await(fmt.Sprint("batch ", last), func() bool {
			s := r.sub.Status()
			return len(s) == 1 && s[0].Any && s[0].LastSeq == last && s[0].LastTime == r.clock // of this start of the engine
		})
	}
	return r.index.Stats().Complete
}

// right checks every request against the cache.
func (r *rig) right() {
	r.t.Helper()
	for _, id := range slices.Sorted(maps.Keys(r.requests)) {
		q := r.requests[id]
		if got, want := r.index.Prefix(q.tokens, residency.Key{Salt: q.salt}), r.resident(q.salt, q.tokens)*size; got != want {
			r.t.Fatalf("%v: %d tokens resident, want %d\n%+v\n%+v", q.tokens, got, want, r.sub.Status(), r.index.Stats())
		}
	}
	if err := r.index.Check(); err != nil {
		r.t.Fatal(err)
	}
}

// work lets the cache serve a request, or evict.
func (r *rig) work() {
	if len(r.blocks) > 12 && rapid.Bool().Draw(r.t, "evict") {
		r.evict(rapid.SliceOfN(rapid.IntRange(0, 50), 1, 3).Draw(r.t, "which")...)
		return
	}
	tokens := rapid.SliceOfN(rapid.IntRange(1, 2), 2, 8).Draw(r.t, "tokens")
	r.ids++
	id := fmt.Sprint("r", r.ids)
	r.requests[id] = &asked{tokens: tokens}
	r.index.Register(id, tokens, residency.Key{})
	r.store("", tokens, r.resident("", tokens), len(tokens)/size)
	r.index.Served(id)
}

// fault does something to the event path.
func (r *rig) fault(kinds []string) {
	switch kind := rapid.SampledFrom(kinds).Draw(r.t, "fault"); kind {
	case "none":
		r.publish()
	case "drop":
		r.engine.Buffer(r.payload())
	case "duplicate":
		r.publish()
		n := len(r.sent) - 1
		r.engine.Send(uint64(n), r.sent[n])
	case "old duplicate":
		if len(r.sent) > 0 {
			n := rapid.IntRange(0, len(r.sent)-1).Draw(r.t, "number")
			r.engine.Send(uint64(n), r.sent[n])
		}
	case "disorder":
		n := r.engine.Buffer(r.payload())
		r.work()
		r.publish()
		r.engine.Send(n, r.sent[n])
	case "truncate":
		p := r.payload()
		r.engine.Send(r.engine.Buffer(p), p[:rapid.IntRange(0, len(p)-1).Draw(r.t, "length")])
	case "corrupt":
		p := slices.Clone(r.payload())
		n := r.engine.Buffer(p)
		p = slices.Clone(p)
		p[0] ^= 0xff
		r.engine.Send(n, p)
	case "wrong rank":
		lie := kvfake.Payload(kvfake.Map, 1, 7, kvevents.Event{Kind: kvevents.Cleared})
		r.engine.Send(uint64(rapid.IntRange(0, len(r.sent)+3).Draw(r.t, "number")), lie)
		r.publish()
	case "frames":
		r.engine.Frames([]byte("x"), []byte("y"))
		r.publish()
	case "wrong number":
		r.publish()
		n := rapid.Uint64Range(uint64(len(r.sent)+20), 1<<63).Draw(r.t, "number")
		r.engine.Send(n, r.sent[len(r.sent)-1])
	case "break":
		r.publish()
		r.engine.Stop()
		r.engine.Reset()
		r.start()
		r.await("a subscription", r.engine.Subscribers)
	case "restart":
		r.engine.Stop()
		r.blocks, r.events, r.sent = nil, nil, nil
		r.names = map[string]kvevents.Hash{"": {}} // other names
		for range rapid.IntRange(0, 9).Draw(r.t, "shift") {
			r.hash(fmt.Sprint("shift", len(r.names)))
		}
		r.engine = &kvfake.Engine{}
		r.start()
		r.await("a subscription", r.engine.Subscribers)
	}
}

var faults = []string{
	"none", "none", "drop", "duplicate", "old duplicate", "disorder", "truncate", "corrupt", "wrong rank", "frames",
	"break", "restart",
}

// onRigs checks what holds of every rig.
func onRigs(t *testing.T, replay bool, check func(t *rapid.T, r *rig)) {
	t.Helper()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		r := newRig(t, dir, replay)
		defer r.end()
		check(t, r)
	})
}

// trouble is some work with faults on the way.
func (r *rig) trouble() {
	for range rapid.IntRange(1, 8).Draw(r.t, "steps") {
		r.work()
		r.fault(faults)
	}
}

// complete waits until the index knows everything, and checks it.
func (r *rig) complete() {
	r.await("completeness", func() bool { return r.index.Stats().Complete })
	r.right()
}

// TestFaultsWithReplay: whatever happens on the way, the index ends up knowing everything, and is right.
func TestFaultsWithReplay(t *testing.T) {
	onRigs(t, true, func(t *rapid.T, r *rig) {
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			r.trouble()
			r.settle()
			r.complete()
		}
	})
}

// TestFaultsWithoutReplay: the index is right whenever it says that it knows everything, and it does so again as soon
// as the cache is cleared.
func TestFaultsWithoutReplay(t *testing.T) {
	onRigs(t, false, func(t *rapid.T, r *rig) {
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			r.trouble()
			if r.settle() {
				r.right()
			}
		}
		r.clear()
		for range 5 {
			r.work()
			r.publish()
		}
		if !r.settle() {
			t.Fatalf("not complete after the cache was cleared: %+v, %+v", r.sub.Status(), r.index.Stats())
		}
		r.right()
	})
}

// TestWrongNumbers: a number that is far off looks like a gap and then like a restart. The index gets over it.
func TestWrongNumbers(t *testing.T) {
	onRigs(t, true, func(t *rapid.T, r *rig) {
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			r.work()
			r.fault([]string{"none", "wrong number"})
		}
		r.work()
		r.settle()
		r.complete()
	})
}

// TestFlippedBits: a payload that is still readable may say anything. Nothing breaks, and asking for the history once
// more repairs it.
func TestFlippedBits(t *testing.T) {
	onRigs(t, true, func(t *rapid.T, r *rig) {
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			r.work()
			p := r.payload()
			n := r.engine.Buffer(p)
			p = slices.Clone(p)
			p[rapid.IntRange(0, len(p)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			r.engine.Send(n, p)
		}
		r.settle()
		before := r.sub.Status()[0].Resyncs
		r.sub.Resync("r")
		r.await("the history", func() bool { return r.sub.Status()[0].Resyncs > before })
		r.settle()
		r.complete()
	})
}

func (r *rig) end() {
	if err := r.stop(); err != nil {
		r.t.Error(err)
	}
	r.engine.Stop()
}
