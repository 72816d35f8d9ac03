package savings_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ragpilot/ragpilot/internal/sidecar/savings"
)

func TestFewSessionsSaySo(t *testing.T) {
	var m savings.Meter
	for range 10 {
		for s := range savings.MinSessions {
			m.Add(savings.Sample{Session: fmt.Sprint("h", s), HeldOut: true, TTFT: 1, Computed: 100, Cost: math.NaN()})
			if s > 0 {
				m.Add(savings.Sample{Session: fmt.Sprint("p", s), TTFT: 1, Computed: 40, Cost: math.NaN()})
			}
		}
	}
	if f := m.TTFT(); f.OK {
		t.Errorf("one group lacks a session, however many requests there are: %+v", f)
	}
	m.Add(savings.Sample{Session: "p", TTFT: 1, Computed: 40, Cost: math.NaN()})
	want := savings.Figure{
		Saved:    60,
		Low:      60,
		High:     60,
		HeldOut:  100,
		Planned:  40,
		Samples:  [2]int{200, 191},
		Sessions: [2]int{20, 20},
		OK:       true,
	}
	if diff := cmp.Diff(want, m.Computed(), cmpopts.EquateApprox(1e-9, 1e-5)); diff != "" {
		t.Error(diff)
	}
	if f := m.Cost(); f != (savings.Figure{}) {
		t.Errorf("a figure without samples: %+v", f)
	}
	m.Reset()
	if f := m.Computed(); f != (savings.Figure{}) {
		t.Errorf("after Reset: %+v", f)
	}
}

// The mean is that of requests, and the interval that of the jackknife over sessions, computed here by its definition.
func TestAgainstTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var m savings.Meter
	var y, n [2][]float64
	for g := range 2 {
		for s := range 25 {
			y[g], n[g] = append(y[g], 0), append(n[g], 0)
			for range 1 + r.IntN(9) {
				v := 100 + float64(10*s) + r.NormFloat64()
				y[g][s] += v
				n[g][s]++
				m.Add(savings.Sample{Session: fmt.Sprint(s), HeldOut: g == 0, TTFT: v, Computed: v, Cost: v / 1e6})
			}
		}
	}
	var mean, variance [2]float64
	for g := range 2 {
		without := make([]float64, len(y[g]))
		total := 0.0
		for s := range y[g] {
			without[s] = (sum(y[g]) - y[g][s]) / (sum(n[g]) - n[g][s])
			total += without[s]
		}
		mean[g] = sum(y[g]) / sum(n[g])
		for s := range y[g] {
			d := without[s] - mean[g]
			variance[g] += d * d * float64(len(y[g])-1) / float64(len(y[g]))
		}
	}
	f := m.TTFT()
	if math.Abs(f.Saved-(mean[0]-mean[1])) > 1e-9 {
		t.Errorf("saved %v, want %v", f.Saved, mean[0]-mean[1])
	}
	half := (f.High - f.Low) / 2 / math.Sqrt(variance[0]+variance[1])
	if half < 1.96 || half > 2.1 { // Student's quantile of some 20 to 48 degrees of freedom
		t.Errorf("half the interval is %v standard errors", half)
	}
	if c := m.Cost(); math.Abs(c.Saved*1e6-f.Saved) > 1e-6 || math.Abs(c.High*1e6-f.High) > 1e-6 {
		t.Errorf("money %+v, time %+v", c, f)
	}
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}

// Requests without a session stand for themselves.
func TestWithoutSessions(t *testing.T) {
	var m savings.Meter
	for range 30 {
		m.Add(savings.Sample{TTFT: 1, Computed: 1, Cost: 1})
	}
	if f := m.TTFT(); f.Sessions[1] != 30 {
		t.Errorf("%+v", f)
	}
}

// Sessions beyond the bound are closed: the sums keep them, and only how they hang together with later requests is lost.
func TestClosedSessions(t *testing.T) {
	const sessions = savings.MaxSessions + 3000
	var m, few savings.Meter
	r := rand.New(rand.NewPCG(5, 6))
	for i := range sessions {
		effect := r.NormFloat64()
		for range 1 + i%3 {
			v := 5 + effect + r.NormFloat64()/10
			m.Add(savings.Sample{Session: fmt.Sprint(i), TTFT: v, Computed: math.NaN(), Cost: math.NaN()})
			m.Add(savings.Sample{Session: fmt.Sprint(i), HeldOut: true, TTFT: 1 + v, Computed: math.NaN(), Cost: math.NaN()})
		}
		if i%20 == 0 { // the same spread, never closed
			few.Add(savings.Sample{Session: fmt.Sprint(i), TTFT: effect, Computed: math.NaN(), Cost: math.NaN()})
		}
	}
	f := m.TTFT()
	if f.Sessions != [2]int{sessions, sessions} || math.Abs(f.Saved-1) > 1e-9 {
		t.Errorf("%+v", f)
	}
	// Two groups of equal sessions: 1.96 × √2 × the deviation of a session's mean, over √sessions, and a little more as
	// sessions differ in length.
	if half, want := (f.High-f.Low)/2, 1.96*math.Sqrt2/math.Sqrt(sessions); half < want || half > 1.2*want {
		t.Errorf("half the interval is %v, want %v", half, want)
	}
	m.Add(savings.Sample{Session: "0", TTFT: 1, Computed: math.NaN(), Cost: math.NaN()})
	if got := m.TTFT().Sessions[1]; got != sessions+1 {
		t.Errorf("%d sessions after one that was closed went on, want it counted anew: %d", got, sessions+1)
	}
}

func TestConcurrentUse(t *testing.T) {
	var m savings.Meter
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 500 {
				m.Add(savings.Sample{Session: fmt.Sprint(w, i/5), HeldOut: i%10 == 0, TTFT: 1, Computed: 2, Cost: 3})
				m.Computed()
			}
		})
	}
	wg.Wait()
	if f := m.Cost(); f.Samples != [2]int{200, 1800} {
		t.Errorf("%+v", f)
	}
}

func BenchmarkAdd(b *testing.B) {
	var m savings.Meter
	names := make([]string, 4*savings.MaxSessions)
	for i := range names {
		names[i] = fmt.Sprint("session ", i)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		m.Add(savings.Sample{Session: names[i%len(names)], TTFT: 1, Computed: 2, Cost: math.NaN()})
		i++
	}
}

func BenchmarkFigure(b *testing.B) {
	var m savings.Meter
	for i := range 2 * savings.MaxSessions {
		m.Add(savings.Sample{Session: fmt.Sprint(i / 2), HeldOut: i%2 == 0, TTFT: 1, Computed: 2, Cost: math.NaN()})
	}
	b.ReportAllocs()
	for b.Loop() {
		m.TTFT()
	}
}
