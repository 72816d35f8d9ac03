package gain_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ragpilot/ragpilot/internal/gain"
)

// The interval covers the true difference about as often as it says.
func TestCoverage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	covered := 0
	const runs = 1000
	for range runs {
		var m gain.Meter
		for range 40 {
			m.Add(gain.Sample{HeldOut: true, TTFT: 2 + r.NormFloat64(), Computed: math.NaN()})
		}
		for range 200 {
			m.Add(gain.Sample{TTFT: 1.5 + r.NormFloat64()/2, Computed: math.NaN()})
		}
		if f := m.TTFT(); f.Low <= 0.5 && 0.5 <= f.High {
			covered++
		}
		if m.Computed().OK {
			t.Fatal("a figure without samples")
		}
	}
	if covered < 920 || covered > 980 {
		t.Errorf("the 95 %% interval covered the difference in %d of %d runs", covered, runs)
	}
}

func TestFewSamplesSaySo(t *testing.T) {
	var m gain.Meter
	for range gain.MinSamples {
		m.Add(gain.Sample{HeldOut: true, TTFT: 1, Computed: 100})
	}
	for range gain.MinSamples - 1 {
		m.Add(gain.Sample{TTFT: 1, Computed: 40})
	}
	if m.TTFT().OK {
		t.Error("one group lacks samples")
	}
	m.Add(gain.Sample{TTFT: 1, Computed: 40})
	if f := m.Computed(); !f.OK || f.Saved != 60 || f.Low != 60 || f.Samples != [2]int{30, 30} {
		t.Errorf("%+v", f)
	}
}
