package residency_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/internal/testkit/kvfake"
)

// BenchmarkPlanUnderEvents plans requests of 15 blocks and registers their 1,500 tokens, one after the other, while a
// fake engine publishes at most that many events a second over ZeroMQ, in this process too. An operation is one plan.
func BenchmarkPlanUnderEvents(b *testing.B) {
	for _, rate := range []int{0, 50_000} {
		b.Run(fmt.Sprintf("events/s=%d", rate), func(b *testing.B) { planUnderEvents(b, rate) })
	}
}

// batchesAhead are made before the clock runs: what an engine spends on making its messages is not ours.
const batchesAhead = 6000

func planUnderEvents(b *testing.B, rate int) {
	endpoint := "tcp://" + testkit.FreeAddress(b)

	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		b.Fatal(err)
	}
	observe := pilot.Sink(contextpilot.Scope{})
	x := residency.New(residency.Config{OnUpdate: func(us []residency.Update) { observe(residency.Events(contextpilot.Scope{}, us)...) }})
	e := newEngine(16, residentBlocks)
	source := &kvfake.Engine{}
	if err := source.Start(endpoint, ""); err != nil {
		b.Fatal(err)
	}
	defer source.Stop()
	sub, err := kvevents.New(kvevents.Config{
		Sources: []kvevents.Source{{Name: "r", Endpoint: endpoint}},
		Sink:    func(kvevents.Publisher) kvevents.Sink { return x },
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 2)
	go func() { done <- sub.Run(ctx) }()
	for !source.Subscribers() {
		time.Sleep(time.Millisecond)
	}

	var payloads [][]byte
	var events []int
	if rate > 0 {
		for range batchesAhead {
			evs := e.serve(e.prompt())
			payloads = append(payloads, kvfake.Payload(kvfake.Map, 1, 0, evs...))
			events = append(events, len(evs))
		}
	}
	go func() {
		pace(ctx, source, payloads, events, rate)
		done <- nil
	}()

	var blocks []contextpilot.Block
	for i := range 200 {
		blocks = append(blocks, contextpilot.Block{ID: fmt.Sprint(i), Text: fmt.Sprint("passage ", i), Tokens: 100})
	}
	pick := make([]contextpilot.Block, 15)
	prompts := make([][]int, 64)
	for i := range prompts {
		prompts[i] = e.prompt()
	}
	took := make([]time.Duration, 0, 1<<20)
	began, before := time.Now(), applied(sub)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		for j := range pick {
			pick[j] = blocks[(i*7+j*13)%len(blocks)]
		}
		start := time.Now()
		p := pilot.Plan(contextpilot.Request{Blocks: pick})
		x.Register(p.RequestID, prompts[i%len(prompts)], residency.Key{})
		if len(took) < cap(took) {
			took = append(took, time.Since(start))
		}
		x.Drop(p.RequestID)
	}
	seconds := time.Since(began).Seconds()
	b.ReportMetric(float64(applied(sub)-before)/seconds, "events/s")
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	cancel()
	for range 2 {
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
	if s := sub.Status()[0]; s.Overflows > 0 {
		b.Logf("%d messages were dropped", s.Overflows)
	}
}

func applied(sub *kvevents.Subscriber) uint64 {
	if s := sub.Status(); len(s) > 0 {
		return s[0].Events
	}
	return 0
}

// pace publishes until ctx ends or all is published.
func pace(ctx context.Context, source *kvfake.Engine, payloads [][]byte, events []int, rate int) {
	began, sent := time.Now(), 0
	for i, p := range payloads {
		due := time.Duration(float64(sent) / float64(rate) * float64(time.Second))
		if wait := due - time.Since(began); wait > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
		}
		source.Send(uint64(i), p)
		sent += events[i]
	}
}
