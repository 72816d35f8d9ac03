package httpload

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/load"
)

// Defaults of [Load] and [Config].
const (
	DefaultMaxInFlight = 4096
	DefaultTimeout     = 30 * time.Second
)

// Load says when requests are sent: Rate or Clients is above 0.
type Load struct {
	// Rate is the number of requests due in a second, whatever becomes of them.
	Rate float64
	// Poisson draws the times between requests, with the mean that Rate gives; otherwise all are equal.
	Poisson bool
	Seed    uint64
	// Clients is the number of clients that each send a request when they have the answer to the one before.
	Clients int
	// MaxInFlight is the number of requests under way at a time at a rate; beyond it requests wait here, and are charged
	// with that. 0: [DefaultMaxInFlight].
	MaxInFlight int
}

// String says what load it is.
func (l Load) String() string {
	switch {
	case l.Clients > 0:
		return fmt.Sprintf("%d clients, one request after the other", l.Clients)
	case l.Poisson:
		return fmt.Sprintf("%g requests/s, Poisson", l.Rate)
	}
	return fmt.Sprintf("%g requests/s", l.Rate)
}

// validate also says that there are not more requests than one can hold.
func (l Load) validate(span time.Duration) error {
	switch {
	case l.Rate > 0 == (l.Clients > 0):
		return errors.New("want either a rate or a number of clients")
	case l.Clients < 0 || l.Rate < 0 || math.IsNaN(l.Rate) || math.IsInf(l.Rate, 0) || l.MaxInFlight < 0:
		return errors.New("a rate, clients or bound below 0, or infinite")
	case l.Rate*span.Seconds() > 1e8:
		return fmt.Errorf("rate %g: more than a hundred million requests", l.Rate)
	}
	return nil
}

// dues returns when requests are due within a span, since its begin.
func (l Load) dues(span time.Duration) []time.Duration {
	mean := l.Rate * span.Seconds()
	if l.Poisson {
		enough := int(mean + 8*math.Sqrt(mean) + 32) // more than this come once in 10^15 runs
		all := load.Arrivals{Kind: load.Poisson, Rate: l.Rate}.Starts(enough, l.Seed)
		for i, due := range all {
			if due >= span {
				return all[:i]
			}
		}
		return all
	}
	out := make([]time.Duration, 0, int(mean)+1)
	for i := 0; ; i++ {
		due := time.Duration(float64(i) / l.Rate * float64(time.Second))
		if due >= span {
			return out
		}
		out = append(out, due)
	}
}
