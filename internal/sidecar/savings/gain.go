package savings

import (
	"math"
	"sync"

	"gonum.org/v1/gonum/stat/distuv"
)

// Sample is one answered request.
type Sample struct {
	// Session is what requests that are not independent have in common, tenant included. Empty: a session of its own.
	Session  string
	HeldOut  bool
	TTFT     float64 // seconds to the first byte of the answer
	Computed float64 // prompt tokens that the engine computed; NaN: it did not say
	Cost     float64 // money for the prompt; NaN: it has no price
}

// Figure compares the two groups in one quantity. Saved is the mean of the held-out requests less that of the others;
// Low and High bound it at 95 %, with sessions as what was drawn. Below MinSessions in a group OK is false, and the bounds
// are not to be shown.
type Figure struct {
	Saved    float64 `json:"saved"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	HeldOut  float64 `json:"held_out_mean"`
	Planned  float64 `json:"planned_mean"`
	Samples  [2]int  `json:"samples"`  // requests held out, planned
	Sessions [2]int  `json:"sessions"` // of them
	OK       bool    `json:"ok"`
}

// MinSessions is the number of sessions that each group needs. The interval of fewer would hold the true value less often
// than it says (see the tests).
const MinSessions = 20

// Meter collects samples. Safe for concurrent use. The zero Meter is ready.
type Meter struct {
	mu     sync.Mutex
	groups [2]group // held out, planned
}

// quantities of a sample, in the order of a session's sums.
const (
	ttft = iota
	computed
	cost
	quantities
)

// Add takes a sample in. O(1).
func (m *Meter) Add(s Sample) {
	at := 1
	if s.HeldOut {
		at = 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.groups[at].add(s.Session, [quantities]float64{ttft: s.TTFT, computed: s.Computed, cost: s.Cost})
}

// Reset forgets all samples.
func (m *Meter) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.groups = [2]group{}
}

// TTFT compares times to the first byte, in seconds.
func (m *Meter) TTFT() Figure { return m.compare(ttft) }

// Computed compares the prompt tokens that the engine computed.
func (m *Meter) Computed() Figure { return m.compare(computed) }

// Cost compares what prompts cost, in money.
func (m *Meter) Cost() Figure { return m.compare(cost) }

// compare takes time by the sessions that are open.
func (m *Meter) compare(quantity int) Figure {
	m.mu.Lock()
	held, planned := m.groups[0].mean(quantity), m.groups[1].mean(quantity)
	m.mu.Unlock()
	f := Figure{
		HeldOut: held.value, Planned: planned.value, Saved: held.value - planned.value,
		Samples: [2]int{held.requests, planned.requests}, Sessions: [2]int{held.sessions, planned.sessions},
	}
	half := 0.0
	if v := held.variance + planned.variance; v > 0 {
		// 2 degrees of freedom say next to nothing, a million are as good as a normal distribution.
		t := distuv.StudentsT{Sigma: 1, Nu: min(max(v*v/(part(held)+part(planned)), 2), 1e6)}
		half = t.Quantile(.975) * math.Sqrt(v)
	}
	f.Low, f.High = f.Saved-half, f.Saved+half
	f.OK = held.sessions >= MinSessions && planned.sessions >= MinSessions
	return f
}

// part is a group's share of the denominator of the degrees of freedom (Welch, Satterthwaite).
func part(e estimate) float64 {
	if e.variance == 0 {
		return 0
	}
	return e.variance * e.variance / e.freedom
}
