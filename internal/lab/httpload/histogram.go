package httpload

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ragpilot/ragpilot/internal/lab/figures"
)

// longest is the longest time that has a bucket of its own; longer ones count as that long.
const longest = 24 * time.Hour

// Histogram counts times in buckets that are at most 1/1024 of their times wide: three digits. It takes 300 kB once it holds a time.
// The zero value is empty. Not safe for concurrent use.
type Histogram struct {
	counts *hdrhistogram.Histogram // of nanoseconds; nil: empty
	sum    float64                 // ns
	max    time.Duration
}

func (h *Histogram) buckets() *hdrhistogram.Histogram {
	if h.counts == nil {
		h.counts = hdrhistogram.New(1, int64(longest), 3)
	}
	return h.counts
}

// Record counts a time; one below 0 counts as 0.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0)
	_ = h.buckets().RecordValue(int64(min(d, longest))) // it is in the range
	h.sum += float64(d)
	h.max = max(h.max, d)
}

// Add counts all times of another histogram too.
func (h *Histogram) Add(other *Histogram) {
	if other.counts != nil {
		h.buckets().Merge(other.counts)
	}
	h.sum += other.sum
	h.max = max(h.max, other.max)
}

// Count returns the number of times.
func (h *Histogram) Count() int {
	if h.counts == nil {
		return 0
	}
	return int(h.counts.TotalCount())
}

// Max returns the largest time, exactly.
func (h *Histogram) Max() time.Duration { return h.max }

// Mean returns the mean, exact but for rounding; 0 of none.
func (h *Histogram) Mean() time.Duration {
	return time.Duration(h.sum / float64(max(h.Count(), 1)))
}

// Quantile returns the smallest recorded time that a share q (0 to 1) of the times does not exceed, too large by less than
// one part in 1024; 0 of none.
func (h *Histogram) Quantile(q float64) time.Duration {
	n := float64(h.Count())
	if n == 0 {
		return 0
	}
	rank := min(max(math.Ceil(q*n), 1), n) // the library rounds to the nearest rank
	at := h.counts.ValueAtPercentile(100 * rank / n)
	return min(time.Duration(at), h.max)
}

// Summary is what a report says of a histogram. Times are in microseconds.
type Summary struct {
	Count int     `json:"count"`
	Mean  float64 `json:"mean_us"`
	P50   float64 `json:"p50_us"`
	P90   float64 `json:"p90_us"`
	P99   float64 `json:"p99_us"`
	P999  float64 `json:"p99_9_us"`
	Max   float64 `json:"max_us"`
}

// Summary returns the usual quantiles.
func (h *Histogram) Summary() Summary {
	at := func(q float64) float64 { return figures.Micros(h.Quantile(q)) }
	return Summary{
		Count: h.Count(), Mean: figures.Micros(h.Mean()), P50: at(0.5), P90: at(0.9), P99: at(0.99), P999: at(0.999),
		Max: figures.Micros(h.Max()),
	}
}
