package httpload_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/lab/httpload"
)

// times draws times of every magnitude, some of them equal.
var times = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration {
	bits := rapid.IntRange(0, 45).Draw(t, "bits")
	return time.Duration(rapid.Int64Range(0, 1<<bits).Draw(t, "ns"))
}), 1, 300)

// exact is the smallest time that a share q of them does not exceed.
func exact(all []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[max(int(math.Ceil(q*float64(len(sorted))))-1, 0)]
}

func checkQuantiles(t *rapid.T, h *httpload.Histogram, all []time.Duration) {
	for _, q := range []float64{0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1} {
		got, want := h.Quantile(q), exact(all, q)
		if got < want || float64(got) > float64(want)*(1+1.0/1024) {
			t.Fatalf("quantile %g of %d times: %d, exactly %d", q, len(all), got, want)
		}
	}
	sum := 0.0
	for _, d := range all {
		sum += float64(d)
	}
	if mean := sum / float64(len(all)); math.Abs(float64(h.Mean())-mean) > 1+mean*1e-9 {
		t.Fatalf("mean %v, want %g ns", h.Mean(), mean)
	}
	if h.Count() != len(all) || h.Max() != slices.Max(all) {
		t.Fatalf("count %d, max %v", h.Count(), h.Max())
	}
}

func TestHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var one, two httpload.Histogram
		a, b := times.Draw(t, "a"), times.Draw(t, "b")
		for _, d := range a {
			one.Record(d)
		}
		checkQuantiles(t, &one, a)
		for _, d := range b {
			two.Record(d)
		}
		one.Add(&two)
		checkQuantiles(t, &one, append(a, b...))
	})
}

func TestEmptyHistogram(t *testing.T) {
	var h httpload.Histogram
	if h.Quantile(0.5) != 0 || h.Mean() != 0 || h.Summary() != (httpload.Summary{}) {
		t.Errorf("%+v", h.Summary())
	}
	h.Record(-time.Second)
	if h.Count() != 1 || h.Max() != 0 {
		t.Errorf("a time below 0: %+v", h.Summary())
	}
}

func BenchmarkRecord(b *testing.B) {
	var h httpload.Histogram
	b.ReportAllocs()
	d := time.Duration(1)
	for b.Loop() {
		h.Record(d)
		d = (d*6364136223846793005 + 1442695040888963407) & (1<<32 - 1)
	}
}
