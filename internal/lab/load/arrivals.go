package load

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Kind says what makes conversations begin.
type Kind string

// The kinds of arrivals.
const (
	Poisson Kind = "poisson" // independent of each other and of the engine
	Bursts  Kind = "bursts"  // several at the same moment; the bursts are a Poisson process
	Closed  Kind = "closed"  // a fixed number of users, each beginning the next one when the last has ended
)

// minRate is the smallest rate: with it a trace of 20,000 conversations takes six years, and virtual time does not overflow.
const minRate = 1e-4

// Arrivals say when conversations begin.
type Arrivals struct {
	Kind Kind
	// Rate is the mean number of conversations that begin in a second; of Poisson and Bursts.
	Rate float64
	// Size is the number of conversations that begin together in Bursts, or that are under way at a time in Closed.
	Size int
}

// Parse reads poisson:RATE, bursts:RATE,SIZE or closed:N. RATE and N may be lists: poisson:2,4,8 is three
// arrivals, bursts:2,4,16 two with bursts of 16.
func Parse(text string) ([]Arrivals, error) {
	kind, list, _ := strings.Cut(text, ":")
	fields := strings.Split(list, ",")
	var out []Arrivals
	size := 0
	switch Kind(kind) {
	case Poisson:
	case Bursts:
		var err error
		last := fields[len(fields)-1]
		if size, err = strconv.Atoi(last); err != nil || size < 1 || len(fields) < 2 {
			return nil, fmt.Errorf("%q: want bursts:RATE,SIZE with a whole SIZE of at least 1", text)
		}
		fields = fields[:len(fields)-1]
	case Closed:
		for _, f := range fields {
			n, err := strconv.Atoi(f)
			if err != nil || n < 1 {
				return nil, fmt.Errorf("%q: want closed:N with a whole N of at least 1", text)
			}
			out = append(out, Arrivals{Kind: Closed, Size: n})
		}
		return out, nil
	default:
		return nil, fmt.Errorf("%q: want poisson:RATE, bursts:RATE,SIZE or closed:N", text)
	}
	for _, f := range fields {
		rate, err := strconv.ParseFloat(f, 64)
		if err != nil || math.IsNaN(rate) || math.IsInf(rate, 0) || rate < minRate {
			return nil, fmt.Errorf("%q: want a RATE of at least %g, in conversations a second, not %q", text, minRate, f)
		}
		out = append(out, Arrivals{Kind: Kind(kind), Rate: rate, Size: size})
	}
	return out, nil
}

// String returns what [Parse] reads.
func (a Arrivals) String() string {
	switch a.Kind {
	case Closed:
		return fmt.Sprintf("closed:%d", a.Size)
	case Bursts:
		return fmt.Sprintf("bursts:%s,%d", number(a.Rate), a.Size)
	}
	return fmt.Sprintf("%s:%s", a.Kind, number(a.Rate))
}

// Level is what grows with the load: the rate, or the number of users.
func (a Arrivals) Level() float64 {
	if a.Kind == Closed {
		return float64(a.Size)
	}
	return a.Rate
}

// Starts returns when the first n conversations begin. With the same seed another rate only stretches the times. Users of Closed
// begin at 0, the others when it is their turn, which is not known here: nil.
func (a Arrivals) Starts(n int, seed uint64) []time.Duration {
	if a.Kind == Closed {
		return nil
	}
	size := max(a.Size, 1)
	rnd := rand.New(rand.NewPCG(seed, 1))
	out := make([]time.Duration, n)
	at := 0.0 // in mean gaps
	for i := range out {
		if i%size == 0 {
			at += rnd.ExpFloat64()
		}
		out[i] = time.Duration(at * float64(size) / a.Rate * float64(time.Second))
	}
	return out
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
