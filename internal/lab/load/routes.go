package load

import (
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/lab/figures"
)

// BalanceWindow is the number of requests in a row over which the share of prefill of one server is reported.
const BalanceWindow = 500

// Arm is one way to order blocks and to spread requests over servers.
type Arm struct {
	Name    string
	Policy  string
	Routing Routing
}

// Arms are the ways that are compared: order and server chosen together, the same order with the usual ways to spread
// requests, and prompts as retrieved that are sent to where their prefix is.
func Arms() []Arm {
	return []Arm{
		{"joint", contextpilot.DefaultPolicy, Routed},
		{"order+least-load", contextpilot.DefaultPolicy, LeastLoad},
		{"order+round-robin", contextpilot.DefaultPolicy, RoundRobin},
		{"prefix-only", "retrieval", Routed},
	}
}

// RoutePoint is one arm at one load on so many servers.
type RoutePoint struct {
	Arm      string           `json:"arm"`
	Policy   string           `json:"policy"`
	Routing  Routing          `json:"routing"`
	Replicas int              `json:"replicas"`
	Arrivals string           `json:"arrivals"` // at all replicas together
	Seeds    int              `json:"seeds"`
	Requests int              `json:"requests"`
	Prefill  figures.Interval `json:"prefill_tokens"`
	Hit      figures.Interval `json:"hit_ratio"`
	HitKnown bool             `json:"hit_known"`
	// Imbalance is the largest share of prefill that one replica had of BalanceWindow requests, as a multiple of the mean.
	Imbalance figures.Interval `json:"imbalance"`
	TTFT50    figures.Interval `json:"ttft_p50_ms"`
	TTFT95    figures.Interval `json:"ttft_p95_ms"`
	VsFirst   figures.Interval `json:"prefill_vs_first"` // seed by seed; above 1 is more than the first arm computes
	Against   string           `json:"against"`          // the first arm
	Simulated bool             `json:"simulated"`
	Engine    string           `json:"engine"`
}

// SummariseRoutes takes the runs of one arm together, one for each seed, and compares each with the first arm's run of the
// same seed.
func SummariseRoutes(arm Arm, runs []FleetRun, against string, first []FleetRun) RoutePoint {
	plain := make([]Run, len(runs))
	for i, r := range runs {
		plain[i] = r.Run
	}
	s := Summarise(plain, plain)
	over := func(of func(i int) float64) figures.Interval {
		return each(plain, func(i int, _ Run) float64 { return of(i) })
	}
	return RoutePoint{
		Arm: arm.Name, Policy: arm.Policy, Routing: arm.Routing, Replicas: runs[0].Servers, Arrivals: s.Arrivals, Seeds: s.Seeds,
		Requests: s.Requests, Prefill: s.Computed, Hit: s.Hit, HitKnown: s.HitKnown, TTFT50: s.TTFT50, TTFT95: s.TTFT95, Against: against,
		Imbalance: over(func(i int) float64 { return runs[i].Imbalance(BalanceWindow) }),
		VsFirst:   over(func(i int) float64 { return figures.Ratio(float64(runs[i].Prefill()), float64(first[i].Prefill())) }),
	}
}

// Times returns the arrivals of n servers that each get as much: n times the rate or users. Bursts are as large, and more frequent.
func (a Arrivals) Times(n int) Arrivals {
	if a.Kind == Closed {
		a.Size *= n
	} else {
		a.Rate *= float64(n)
	}
	return a
}
