package httpload

import (
	"math"
	"math/bits"
	"time"
)

// Each power of two is divided into 2^subBits buckets, so a bucket is at most 1/1024 of its times wide: three digits.
const (
	subBits = 10
	sub     = 1 << subBits
)

// Histogram counts times in buckets that widen with the time. It takes 8 kB for each power of two that occurs beyond 1 µs,
// 270 kB for hours. The zero value is empty. Not safe for concurrent use.
type Histogram struct {
	counts []uint64 // by bucket, as many as needed
	total  uint64
	sum    float64 // ns
	max    time.Duration
}

// bucket returns where a time of ns nanoseconds belongs: below 2·sub each nanosecond is a bucket of its own, then
// the highest subBits+1 bits choose.
func bucket(ns uint64) int {
	if ns < 2*sub {
		return int(ns)
	}
	shift := bits.Len64(ns) - subBits - 1
	return shift<<subBits + int(ns>>shift)
}

// bucketEnd returns the largest time in a bucket.
func bucketEnd(b int) time.Duration {
	if b < 2*sub {
		return time.Duration(b)
	}
	shift := b>>subBits - 1
	low := uint64(b-shift<<subBits) << shift
	return time.Duration(low + 1<<shift - 1)
}

// Record counts a time; one below 0 counts as 0.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0)
	b := bucket(uint64(d))
	if b >= len(h.counts) {
		h.counts = append(h.counts, make([]uint64, b+1-len(h.counts))...)
	}
	h.counts[b]++
	h.total++
	h.sum += float64(d)
	h.max = max(h.max, d)
}

// Add counts all times of another histogram too.
func (h *Histogram) Add(other *Histogram) {
	if n := len(other.counts) - len(h.counts); n > 0 {
		h.counts = append(h.counts, make([]uint64, n)...)
	}
	for b, n := range other.counts {
		h.counts[b] += n
	}
	h.total += other.total
	h.sum += other.sum
	h.max = max(h.max, other.max)
}

// Count returns the number of times.
func (h *Histogram) Count() int { return int(h.total) }

// Max returns the largest time, exactly.
func (h *Histogram) Max() time.Duration { return h.max }

// Mean returns the mean, exact but for rounding; 0 of none.
func (h *Histogram) Mean() time.Duration {
	if h.total == 0 {
		return 0
	}
	return time.Duration(h.sum / float64(h.total))
}

// Quantile returns the smallest recorded time that a share q (0 to 1) of the times does not exceed, too large by less than
// one part in 1024; 0 of none.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	rank := uint64(min(max(math.Ceil(q*float64(h.total)), 1), float64(h.total)))
	seen := uint64(0)
	for b, n := range h.counts {
		if seen += n; seen >= rank {
			return min(bucketEnd(b), h.max)
		}
	}
	return h.max
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
	at := func(q float64) float64 { return micros(h.Quantile(q)) }
	return Summary{Count: h.Count(), Mean: micros(h.Mean()), P50: at(0.5), P90: at(0.9), P99: at(0.99), P999: at(0.999), Max: micros(h.Max())}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
