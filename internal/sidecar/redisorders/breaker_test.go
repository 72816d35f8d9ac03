package redisorders

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBreakerOpensProbesAndCloses(t *testing.T) {
	var at time.Time
	b := &breaker{limit: 3, pause: time.Second, now: func() time.Time { return at }}
	ask := func(want, wantProbe bool) {
		t.Helper()
		if ok, probe := b.allow(); ok != want || probe != wantProbe {
			t.Fatalf("allow: %v %v, want %v %v", ok, probe, want, wantProbe)
		}
	}
	report := func(probe bool, o outcome, want bool) {
		t.Helper()
		if turned := b.report(probe, o); turned != want {
			t.Fatalf("turned: %v, want %v", turned, want)
		}
	}
	for range 2 { // an answer between failures: not in a row
		ask(true, false)
		report(false, failed, false)
	}
	report(false, answered, false)
	report(false, failed, false)
	report(false, unknown, false)
	report(false, failed, false)
	report(false, failed, true)
	ask(false, false)
	at = at.Add(time.Second - 1)
	ask(false, false)
	at = at.Add(1)
	ask(true, true)
	ask(false, false) // one probe at a time
	report(false, answered, false)
	ask(false, false) // an answer from before does not count
	report(true, failed, false)
	ask(false, false)
	at = at.Add(time.Second)
	ask(true, true)
	report(true, unknown, false)
	ask(true, true) // the next tries instead
	report(true, answered, true)
	for range 2 {
		ask(true, false)
		report(false, failed, false)
	}
	if b.isOpen() {
		t.Fatal("open after two failures")
	}
}

// Whatever is reported in whatever order: while it is open there is at most one operation in each pause that has failed,
// and an answered probe closes it.
func TestBreakerNeverLetsManyThroughWhileOpen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var at time.Time
		b := &breaker{limit: rapid.IntRange(1, 4).Draw(t, "limit"), pause: time.Second, now: func() time.Time { return at }}
		var running []bool // whether each is a probe
		var lastFailed time.Time
		t.Repeat(map[string]func(*rapid.T){
			"time": func(t *rapid.T) { at = at.Add(time.Duration(rapid.IntRange(0, 1500).Draw(t, "ms")) * time.Millisecond) },
			"allow": func(t *rapid.T) {
				open := b.isOpen()
				ok, probe := b.allow()
				if probe != (ok && open) {
					t.Fatalf("open %v: allowed %v, probe %v", open, ok, probe)
				}
				if probe && at.Before(lastFailed.Add(time.Second)) && !lastFailed.IsZero() {
					t.Fatal("a probe too early")
				}
				if ok {
					running = append(running, probe)
				}
			},
			"report": func(t *rapid.T) {
				if len(running) == 0 {
					t.Skip("nothing is under way")
				}
				i := rapid.IntRange(0, len(running)-1).Draw(t, "which")
				probe := running[i]
				running = append(running[:i:i], running[i+1:]...)
				o := outcome(rapid.IntRange(0, 2).Draw(t, "outcome"))
				before := b.isOpen()
				turned := b.report(probe, o)
				if turned != (b.isOpen() != before) {
					t.Fatalf("turned %v, was open %v, is %v", turned, before, b.isOpen())
				}
				if b.isOpen() && o == failed && (probe || turned) {
					lastFailed = at
				}
				if probe && o == answered && b.isOpen() {
					t.Fatal("an answered probe has not closed it")
				}
			},
			"": func(t *rapid.T) {
				probes := 0
				for _, p := range running {
					if p {
						probes++
					}
				}
				if probes > 1 {
					t.Fatalf("%d probes at a time", probes)
				}
			},
		})
	})
}
