package savings_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/savings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// world makes the requests of one session: how many, and what each took.
type world struct {
	name     string
	held     int // sessions held out
	planned  int
	requests func(r *rand.Rand) int
	effect   func(r *rand.Rand, requests int) float64 // what the session's requests have in common
	noise    float64
	least    float64 // share of runs in which the interval holds the truth
	alone    bool    // every session is one request: the per-request interval holds too
}

// truth is the difference of the two groups in every world.
const truth = 0.5

var worlds = []world{
	{name: "single questions", held: 60, planned: 400, requests: one, effect: normal, noise: 1, least: .93, alone: true},
	{name: "conversations", held: 60, planned: 400, requests: geometric(8), effect: normal, noise: .5, least: .93},
	{name: "few conversations", held: savings.MinSessions, planned: 100, requests: geometric(8), effect: normal, noise: .5, least: .93},
	{name: "skewed", held: 60, planned: 400, requests: geometric(8), effect: lognormal, noise: .5, least: .93},
	{name: "long conversations wait longer", held: 60, planned: 400, requests: geometric(6), effect: func(r *rand.Rand, n int) float64 {
		return .2*float64(n) + .5*r.NormFloat64()
	}, noise: .5, least: .90},
	{name: "agents among users", held: 80, planned: 400, requests: func(r *rand.Rand) int {
		if r.IntN(10) == 0 {
			return 60
		}
		return 3
	}, effect: normal, noise: .5, least: .93},
}

func one(*rand.Rand) int { return 1 }

func geometric(mean float64) func(*rand.Rand) int {
	return func(r *rand.Rand) int { return 1 + int(math.Log(1-r.Float64())/math.Log(1-1/mean)) }
}

func normal(r *rand.Rand, _ int) float64 { return r.NormFloat64() }

func lognormal(r *rand.Rand, _ int) float64 { return math.Exp(.6 * r.NormFloat64()) }

// The interval holds the true difference about as often as it says, although requests of a session are alike; the
// interval that takes every request for itself does not, which shows that the two differ in these worlds.
func TestCoverage(t *testing.T) {
	testkit.NotUnderRace(t)
	const runs = 1000
	for _, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			bySession, byRequest := 0, 0
			for range runs {
				var m savings.Meter
				var groups [2][]float64
				for g, sessions := range []int{w.held, w.planned} {
					for s := range sessions {
						n := w.requests(r)
						common := w.effect(r, n)
						for range n {
							v := common + w.noise*r.NormFloat64()
							if g == 0 {
								v += truth
							}
							m.Add(savings.Sample{Session: strconv.Itoa(s), HeldOut: g == 0, TTFT: v, Computed: math.NaN(), Cost: math.NaN()})
							groups[g] = append(groups[g], v)
						}
					}
				}
				f := m.TTFT()
				if !f.OK || f.Samples != [2]int{len(groups[0]), len(groups[1])} {
					t.Fatalf("%+v", f)
				}
				if f.Low <= truth && truth <= f.High {
					bySession++
				}
				if perRequest(groups) {
					byRequest++
				}
			}
			t.Logf("of %d: by session %d, by request %d", runs, bySession, byRequest)
			if share := float64(bySession) / runs; share < w.least || share > .975 {
				t.Errorf("the 95 %% interval held the true difference in %d of %d worlds", bySession, runs)
			}
			if float64(byRequest)/runs > .6 && !w.alone {
				t.Errorf("taking requests for independent held the true difference in %d of %d worlds: the test proves nothing", byRequest, runs)
			}
		})
	}
}

// perRequest reports whether Welch's interval over requests holds the true difference.
func perRequest(groups [2][]float64) bool {
	var mean, variance [2]float64
	for g, values := range groups {
		mean[g] = sum(values) / float64(len(values))
		for _, v := range values {
			variance[g] += (v - mean[g]) * (v - mean[g]) / float64(len(values)-1) / float64(len(values))
		}
	}
	return math.Abs(mean[0]-mean[1]-truth) <= 1.96*math.Sqrt(variance[0]+variance[1])
}
