package dispatch

import (
	"time"

	"github.com/ragpilot/ragpilot/engines"
)

// Prices are those of a million tokens each, in any currency.
type Prices struct {
	Input  float64 // prompt tokens that are computed
	Cached float64 // prompt tokens from the cache
	Output float64
}

// Cost returns what an answer costs.
func (p Prices) Cost(u engines.Usage) float64 {
	cached := 0
	if u.CachedKnown {
		cached = u.CachedTokens
	}
	return (p.Input*float64(u.PromptTokens-cached) + p.Cached*float64(cached) + p.Output*float64(u.OutputTokens)) / 1e6
}

// mean is a mean of what was seen.
type mean struct{ sum, n float64 }

func (m *mean) add(v float64) { m.sum, m.n = m.sum+v, m.n+1 }

// or returns the mean, or v if nothing was seen.
func (m *mean) or(v float64) float64 {
	if m.n == 0 {
		return v
	}
	return m.sum / m.n
}

// What is assumed until answers show it.
const (
	bytesPerToken = 3   // rather too few, for safety
	outputTokens  = 512 // of an answer without a bound
)

// purse keeps what is spent within a bound. Calls that begin reserve an estimate, which their usage replaces.
type purse struct {
	prices   Prices
	most     float64 // 0: there is no bound
	spent    float64
	reserved float64
	bytes    mean // of prompts, and
	tokens   mean // theirs
	output   mean // tokens of answers
}

// estimate returns what a call may cost: its prompt not in the cache, and its answer as long as it may be.
func (p *purse) estimate(x *item) float64 {
	if p.most == 0 {
		return 0
	}
	per := float64(bytesPerToken)
	if p.tokens.sum > 0 {
		per = p.bytes.sum / p.tokens.sum
	}
	output := float64(x.call.Request.MaxTokens)
	if output == 0 {
		output = p.output.or(outputTokens)
	}
	output *= float64(max(x.call.Choices, 1))
	return (p.prices.Input*float64(x.bytes)/per + p.prices.Output*output) / 1e6
}

// fits reports whether so much more can be spent.
func (p *purse) fits(cost float64) bool { return p.most == 0 || p.spent+p.reserved+cost <= p.most }

// pay replaces a reservation with what was used. An engine that reports no usage is assumed to have done what was estimated; one that
// has not answered, nothing.
func (p *purse) pay(x *item, u engines.Usage, answered bool) {
	p.reserved = max(0, p.reserved-x.reserved)
	switch {
	case u.PromptTokens > 0:
		p.spent += p.prices.Cost(u)
		p.bytes.add(float64(x.bytes))
		p.tokens.add(float64(u.PromptTokens))
		p.output.add(float64(u.OutputTokens))
	case answered:
		p.spent += x.reserved
	}
	x.reserved = 0
}

// bucket bounds retries. It fills with answers, and slowly with time.
type bucket struct {
	share float64 // of a retry for each answer
	every time.Duration
	full  float64
	level float64
	last  time.Time // when the last retry was paid by time
}

func newBucket(share float64, every time.Duration) bucket {
	const full = 10
	return bucket{share: share, every: every, full: full, level: full}
}

func (b *bucket) answered() { b.level = min(b.full, b.level+b.share) }

// take reports whether a retry may begin, or else when it may.
func (b *bucket) take(now time.Time) (ok bool, due time.Time) {
	if b.level >= 1 {
		b.level--
		return true, now
	}
	if due = b.last.Add(b.every); now.Before(due) {
		return false, due
	}
	b.last = now
	return true, now
}
