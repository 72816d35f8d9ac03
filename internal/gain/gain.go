// Package gain measures what planning saves: requests of sessions that are held out, forwarded as they came, are compared
// with all others. Nothing is estimated from plans; without held-out sessions there is no figure.
package gain

import (
	"math"
	"sync"
)

// Sample is one answered request.
type Sample struct {
	HeldOut  bool
	TTFT     float64 // seconds to the first byte of the answer
	Computed float64 // prompt tokens that the engine computed; NaN: it did not say
}

// Figure compares the two groups in one quantity. Saved is the mean of the held-out requests less that of the others;
// Low and High bound it at 95 % (Welch's interval with a normal quantile, so a handful of samples gives too narrow a one:
// ok is false below MinSamples).
type Figure struct {
	Saved   float64 `json:"saved"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	HeldOut float64 `json:"held_out_mean"`
	Planned float64 `json:"planned_mean"`
	Samples [2]int  `json:"samples"` // held out, planned
	OK      bool    `json:"ok"`
}

// MinSamples is the number of requests that each group needs.
const MinSamples = 30

// Meter collects samples. Memory is constant. Safe for concurrent use. The zero Meter is ready.
type Meter struct {
	mu             sync.Mutex
	ttft, computed [2]moments // held out, planned
}

// Add takes a sample in.
func (m *Meter) Add(s Sample) {
	group := 1
	if s.HeldOut {
		group = 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ttft[group].add(s.TTFT)
	if !math.IsNaN(s.Computed) {
		m.computed[group].add(s.Computed)
	}
}

// TTFT compares times to the first byte, in seconds.
func (m *Meter) TTFT() Figure {
	m.mu.Lock()
	defer m.mu.Unlock()
	return compare(m.ttft)
}

// Computed compares the prompt tokens that the engine computed.
func (m *Meter) Computed() Figure {
	m.mu.Lock()
	defer m.mu.Unlock()
	return compare(m.computed)
}

// moments are a running mean and sum of squared deviations (Welford).
type moments struct {
	n        int
	mean, m2 float64
}

func (x *moments) add(v float64) {
	x.n++
	d := v - x.mean
	x.mean += d / float64(x.n)
	x.m2 += d * (v - x.mean)
}

func (x *moments) squaredError() float64 {
	if x.n < 2 {
		return 0
	}
	return x.m2 / float64(x.n-1) / float64(x.n)
}

func compare(g [2]moments) Figure {
	f := Figure{HeldOut: g[0].mean, Planned: g[1].mean, Samples: [2]int{g[0].n, g[1].n}, Saved: g[0].mean - g[1].mean}
	half := 1.96 * math.Sqrt(g[0].squaredError()+g[1].squaredError())
	f.Low, f.High = f.Saved-half, f.Saved+half
	f.OK = g[0].n >= MinSamples && g[1].n >= MinSamples
	return f
}
