package load

import (
	"fmt"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/lab/figures"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

// Routing says how requests are spread over several servers.
type Routing string

// The kinds of [Routing].
const (
	// RoundRobin takes the servers in turn.
	RoundRobin Routing = "round-robin"
	// LeastLoad takes the server with the fewest prefill tokens under way, then the one that has computed least.
	LeastLoad Routing = "least-load"
	// Routed asks an [engines.Router]. With the policy `retrieval` that is prefix-aware routing of prompts as they are.
	Routed Routing = "router"
)

// spread plans requests for servers, by number. Not safe for concurrent use.
type spread struct {
	desk    *desk
	router  *engines.Router
	choose  func() int // nil: the router does
	weighs  bool       // choose looks at pending
	pending []int      // prefill tokens under way
	done    []int      // prefill tokens computed
	at      []int      // the server of each request so far
	turn    int
}

// sentTo is a request on its way.
type sentTo struct {
	server int
	left   int            // prefill tokens that wait
	route  *engines.Route // nil: not the router's
}

func newSpread(j Job, servers int, routing Routing, o engines.RouterOptions) (*spread, error) {
	d, err := newDesk(j)
	if err != nil {
		return nil, err
	}
	if servers < 1 || servers > MaxServers {
		return nil, fmt.Errorf("%d servers: want 1 to %d", servers, MaxServers)
	}
	s := &spread{desk: d, pending: make([]int, servers), done: make([]int, servers)}
	switch routing {
	case RoundRobin:
		s.choose = s.inTurn
	case LeastLoad:
		s.choose, s.weighs = s.leastLoaded, true
	case Routed:
		o.Pilot = d.planner.Pilot()
		if s.router, err = engines.NewRouter(o); err != nil {
			return nil, err
		}
		for i := range servers {
			if err := s.router.Add(nameOf(i), nil); err != nil {
				return nil, err
			}
		}
	default:
		return nil, fmt.Errorf("routing %q: want %s, %s or %s", routing, RoundRobin, LeastLoad, Routed)
	}
	return s, nil
}

// MaxServers bounds the servers of a [Fleet]: a pilot keeps as many scopes by default.
const MaxServers = 64

// nameOf names servers so that their order by name is that by number.
func nameOf(i int) string { return fmt.Sprintf("%02d", i) }

func scopeOf(i int) contextpilot.Scope { return contextpilot.Scope{Replica: nameOf(i)} }

// sink takes what a server's cache reports.
func (s *spread) sink(server int) func(events ...contextpilot.Event) {
	if s.router == nil {
		return s.desk.planner.Pilot().Sink(scopeOf(server))
	}
	return func(events ...contextpilot.Event) { _ = s.router.Observe(nameOf(server), events...) } // the name is known
}

func (s *spread) inTurn() int {
	s.turn++
	return (s.turn - 1) % len(s.pending)
}

func (s *spread) leastLoaded() int {
	best := 0
	for i := range s.pending {
		if s.pending[i] < s.pending[best] || s.pending[i] == s.pending[best] && s.done[i] < s.done[best] {
			best = i
		}
	}
	return best
}

// plan chooses the server and plans for it.
func (s *spread) plan(q trace.Request) (engines.Request, *sentTo, error) {
	to := &sentTo{}
	var failed error
	plan := s.desk.planner.PlanWith(q, func(req contextpilot.Request) contextpilot.Plan {
		if s.router == nil {
			return s.planFor(to, req)
		}
		if to.route, failed = s.router.Route(req); failed != nil {
			return contextpilot.Plan{}
		}
		_, failed = fmt.Sscanf(to.route.Plan.Scope.Replica, "%d", &to.server)
		return to.route.Plan
	})
	if failed != nil {
		return engines.Request{}, nil, failed
	}
	req, err := s.desk.request(q, plan)
	if err != nil {
		return engines.Request{}, nil, err
	}
	s.at = append(s.at, to.server)
	return req, to, nil
}

func (s *spread) planFor(to *sentTo, req contextpilot.Request) contextpilot.Plan {
	to.server = s.choose()
	req.Scope = scopeOf(to.server)
	pilot := s.desk.planner.Pilot()
	if s.weighs {
		m := pilot.Match(req)
		to.left = m.Prompt - m.Tokens
		s.pending[to.server] += to.left
	}
	return pilot.Plan(req)
}

// begun is called at a request's first token: its prefill is done.
func (s *spread) begun(to *sentTo) {
	s.pending[to.server] -= to.left
	to.left = 0
	if to.route != nil {
		to.route.First()
	}
}

// answered is called when a request's answer is complete.
func (s *spread) answered(to *sentTo, q trace.Request, u engines.Usage) {
	s.begun(to)
	s.done[to.server] += u.PromptTokens - u.CachedTokens
	if to.route != nil {
		to.route.Done(u, nil)
	}
	s.desk.planner.AnsweredIn(scopeOf(to.server), q)
}

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
