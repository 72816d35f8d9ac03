package httpload_test

import (
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/httpload"
)

// TestCompare: two servers, one of them 2 ms slower, on a machine on which everything takes 50 ms longer in
// its second half. The medians of either are useless, that of the differences is not.
func TestCompare(t *testing.T) {
	for _, load := range []httpload.Load{{Rate: 200}, {Clients: 3}} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			takes := func(d time.Duration) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					if time.Since(begun) > 5*time.Second {
						time.Sleep(50 * time.Millisecond)
					}
					answersAfter(d)(w, r)
				}
			}
			base, stop := serve(t, takes(12*time.Millisecond))
			defer stop()
			against, stop := serve(t, takes(10*time.Millisecond))
			defer stop()
			got, err := httpload.Compare(t.Context(), httpload.CompareConfig{
				Config:  httpload.Config{Target: base, Bodies: fixed, Load: load, WarmUp: time.Second, Duration: 8 * time.Second},
				Against: against, Slice: 200 * time.Millisecond,
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range got.Latency {
				if d.Pairs != 20 || d.Confidence < 0.95 || !near(d.Median, 2*ms) || !near(d.Low, 2*ms) || d.High < d.Median || d.High > 60*ms {
					t.Errorf("%v: %+v", load, d)
				}
			}
			if len(got.Latency) != 3 || len(got.TTFT) != 0 || len(got.Service) != 3 || !near(got.Service[0].Median, 2*ms) {
				t.Errorf("%+v", got)
			}
			if got.Base.Seconds != 4 || load.Rate > 0 && (got.Base.Requests != 800 || got.Against.OK != 800) {
				t.Errorf("%+v", got.Base)
			}
		})
	}
}

// TestCompareTakesTurns: base, against, against, base, each alone.
func TestCompareTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []byte
		var busy atomic.Int32
		note := func(name byte) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				if busy.Add(1) > 1 {
					t.Error("two at a time")
				}
				order = append(order, name)
				time.Sleep(time.Second)
				busy.Add(-1)
				_, _ = io.WriteString(w, "{}")
			}
		}
		base, stop := serve(t, note('b'))
		defer stop()
		against, stop := serve(t, note('a'))
		defer stop()
		got, err := httpload.Compare(t.Context(), httpload.CompareConfig{
			Config:  httpload.Config{Target: base, Bodies: fixed, Load: httpload.Load{Rate: 1}, WarmUp: time.Second, Duration: 6 * time.Second},
			Against: against, Slice: time.Second,
		})
		if err != nil || string(order) != "baabbaab" { // the first two are the warm-up
			t.Errorf("order %s, %v", order, err)
		}
		if got.Base.OK != 3 || got.Against.OK != 3 || got.Latency[0].Median != 0 || got.Latency[0].Confidence != 0.75 {
			t.Errorf("%+v", got)
		}
	})
}

// TestCompareOneDead: a target without answers leaves nothing to compare, and says why.
func TestCompareOneDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, stop := serve(t, answersAfter(0))
		defer stop()
		against, kill := serve(t, nil)
		kill()
		got, err := httpload.Compare(t.Context(), httpload.CompareConfig{
			Config:  httpload.Config{Target: base, Bodies: fixed, Load: httpload.Load{Rate: 10}, Duration: 4 * time.Second},
			Against: against, Slice: time.Second,
		})
		if err != nil || len(got.Latency) != 0 || got.Base.OK != 20 || got.Against.Errors[0].What != "no connection" {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// TestMedianInterval compares with the sum of binomial coefficients.
func TestMedianInterval(t *testing.T) {
	for n := 1; n <= 1100; n++ {
		values := make([]float64, n)
		for i := range values {
			values[i] = float64(i + 1)
		}
		median, low, high, confidence := httpload.MedianInterval(values)
		if median != float64(n+1)/2 || low+high != float64(n+1) {
			t.Fatalf("n %d: %g in %g to %g", n, median, low, high)
		}
		if n > 1000 {
			if math.Abs((high-low)/(2*1.96*math.Sqrt(float64(n))/2)-1) > 0.1 {
				t.Errorf("n %d: %g to %g", n, low, high)
			}
			continue
		}
		holds := func(k int) float64 { // between the k-th smallest and the k-th largest
			below := 0.0
			for j := range k {
				a, _ := math.Lgamma(float64(n + 1))
				b, _ := math.Lgamma(float64(j + 1))
				c, _ := math.Lgamma(float64(n - j + 1))
				below += math.Exp(a - b - c - float64(n)*math.Ln2)
			}
			return 1 - 2*below
		}
		k := int(low)
		if math.Abs(max(0, holds(k))-confidence) > 1e-9 {
			t.Fatalf("n %d, k %d: confidence %g, want %g", n, k, confidence, holds(k))
		}
		if n >= 6 && (confidence < 0.95 || holds(k+1) >= 0.95) || n < 6 && k != 1 {
			t.Fatalf("n %d, k %d: confidence %g, next %g", n, k, confidence, holds(k+1))
		}
	}
}

// TestMedianIntervalHolds: of many samples of a skewed distribution, as many intervals hold the true median as they say.
func TestMedianIntervalHolds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const runs, n = 4000, 21
	held := 0
	var confidence float64
	for range runs {
		values := make([]float64, n)
		for i := range values {
			values[i] = r.ExpFloat64()
		}
		if !slices.IsSorted(values) { // must not be needed
			var low, high float64
			if _, low, high, confidence = httpload.MedianInterval(values); low <= math.Ln2 && math.Ln2 <= high {
				held++
			}
		}
	}
	if share := float64(held) / runs; math.Abs(share-confidence) > 0.015 {
		t.Errorf("held in %.3f of the samples, said %.3f", share, confidence)
	}
}

func TestBadCompare(t *testing.T) {
	target, stop := serve(t, nil)
	defer stop()
	c := httpload.Config{Target: target, Bodies: fixed, Load: httpload.Load{Rate: 1}, Duration: time.Second}
	for _, bad := range []httpload.CompareConfig{
		{Config: c, Slice: time.Millisecond},
		{Config: c, Against: target},
		{Config: c, Against: target, Slice: time.Second},
		{Against: target, Slice: 1},
	} {
		if _, err := httpload.Compare(t.Context(), bad); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}
