package load_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/lab/load"
)

func TestSummary(t *testing.T) {
	run := func(policy string, ttft ...int) load.Run {
		r := load.Run{Policy: policy, Arrivals: load.Arrivals{Kind: load.Poisson, Rate: 2}}
		for i, ms := range ttft {
			r.Sent = append(r.Sent, load.Sent{
				Arrived: time.Duration(i) * time.Second, TTFT: time.Duration(ms) * time.Millisecond, Total: time.Second,
				Usage: engines.Usage{PromptTokens: 100, CachedTokens: 10 * i, OutputTokens: 20, CachedKnown: true},
			})
		}
		return r
	}
	first := []load.Run{run("a", 100, 200), run("a", 100, 200), run("a", 100, 200)}
	p := load.Summarise([]load.Run{run("b", 10, 20), run("b", 10, 40), run("b", 10, 60)}, first)
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-3 {
			t.Errorf("%s: %f, want %f", name, got, want)
		}
	}
	near("mean", p.TTFT95.Mean, 40)
	near("half width", p.TTFT95.Half, 4.303*20/math.Sqrt(3))
	near("least", p.TTFT95.Min, 20)
	near("most", p.TTFT95.Max, 60)
	near("ratio", p.TTFT95Vs.Mean, 0.2)
	near("tokens per second", p.Output.Mean, 40.0/2)
	near("hits", p.Hit.Mean, 0.05)
	near("computed", p.Computed.Mean, 190)
	near("last tenth", p.Progress[9].Mean, 0.1)
	near("first tenth", p.Progress[0].Mean, 0)
	if p.Policy != "b" || p.Against != "a" || p.Seeds != 3 || p.Requests != 2 || !p.HitKnown || p.Arrivals != "poisson:2" {
		t.Errorf("%+v", p)
	}
	one := load.Summarise(first[:1], first[:1])
	if one.TTFT95.Half != 0 {
		t.Errorf("one run has the interval %+v", one.TTFT95)
	}
	if _, err := json.Marshal(one); err != nil {
		t.Error(err)
	}
	for name, x := range map[string]float64{
		"TTFT": float64(load.Run{}.TTFT(0.5)), "rate": load.Run{}.OutputRate(),
		"hits": load.Run{}.HitRatio(),
	} {
		if x != 0 {
			t.Errorf("%s of an empty run: %f", name, x)
		}
	}
}

func TestFindRate(t *testing.T) {
	for _, limit := range []float64{0.03, 1, 3.7, 8, 5000} {
		for _, start := range []float64{0.1, 4, 100} {
			tries := 0
			got, err := load.FindRate(start, time.Second, func(rate float64) (load.Run, error) {
				tries++
				return load.Run{Sent: []load.Sent{{TTFT: time.Duration(rate / limit * float64(time.Second))}}}, nil
			})
			if err != nil || got > limit || got < limit*0.99 || tries > 40 {
				t.Errorf("limit %g from %g: %g in %d tries, %v", limit, start, got, tries, err)
			}
		}
	}
	for _, ttft := range []time.Duration{0, time.Hour} {
		if _, err := load.FindRate(1, time.Second, func(float64) (load.Run, error) {
			return load.Run{Sent: []load.Sent{{TTFT: ttft}}}, nil
		}); err == nil || !strings.Contains(err.Error(), "1s") {
			t.Errorf("TTFT always %v: %v", ttft, err)
		}
	}
	if _, err := load.FindRate(1, time.Second, func(float64) (load.Run, error) { return load.Run{}, errFake }); !errors.Is(err, errFake) {
		t.Errorf("got %v", err)
	}
	s := load.Sustain("b", 2*time.Second, []float64{3, 6}, "a", []float64{2, 4})
	if s.VsFirst.Mean != 1.5 || s.VsFirst.Half != 0 || s.Rate.Mean != 4.5 || s.Bound != 2000 {
		t.Errorf("%+v", s)
	}
}
