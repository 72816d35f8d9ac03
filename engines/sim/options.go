package sim

import (
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
)

// Defaults of [Options].
const (
	DefaultBlockTokens = 16      // as in vLLM
	DefaultRemember    = 1 << 16 // about 10 MB of bookkeeping when full
)

// Options configures an [Engine]. The zero value is an engine whose cache never fills.
type Options struct {
	// CapacityTokens is the size of the cache in tokens, rounded up to whole blocks; 0 or less: unlimited, and
	// memory grows with every block of text not seen before, about 100 bytes each.
	CapacityTokens int
	// BlockTokens is the number of tokens in a block; 0 or less: [DefaultBlockTokens].
	BlockTokens int
	// Reply makes the answer. It is called once per request before the request enters the cache, by several
	// goroutines at a time. nil: a short text that depends only on the last message.
	Reply func(engines.Request) string
	// Fault, if not nil, is asked before each request whether it is to fail, and how; nil from it: it is not.
	// It is called by several goroutines at a time.
	Fault func(engines.Request) *Fault
	// Cost models the times that responses report; zero: [DefaultCost].
	Cost Cost
	// Scope is put into every event.
	Scope contextpilot.Scope
	// Remember bounds the number of finished requests whose residency is followed; 0 or less:
	// [DefaultRemember]. Beyond it the one that finished first is reported Gone, although part of it, for example a
	// shared system prompt, may still be resident.
	Remember int
}

func (o Options) withDefaults() Options {
	if o.BlockTokens <= 0 {
		o.BlockTokens = DefaultBlockTokens
	}
	if o.Reply == nil {
		o.Reply = reply
	}
	if o.Fault == nil {
		o.Fault = func(engines.Request) *Fault { return nil }
	}
	if o.Cost == (Cost{}) {
		o.Cost = DefaultCost()
	}
	if o.Remember <= 0 {
		o.Remember = DefaultRemember
	}
	return o
}

// Fault says how a request fails.
type Fault struct {
	// After is the number of pieces given before the answer breaks off, at most all of them. 0 or less: the request
	// does not reach the cache.
	After int
	// Err is what the error wraps, beside engines.ErrInterrupted when After is above 0. nil: nothing more, or
	// engines.ErrUnreachable when the request does not reach the cache.
	Err error
}

// Cost models the times of a response; nothing ever waits for them. With c prompt tokens read from the cache,
//
//	TTFT  = Base + PerToken × (prompt tokens − c)
//	Total = TTFT + PerOutput × output tokens
//
// There is no queueing in it: a request costs the same however many run beside it.
type Cost struct {
	Base      time.Duration // per request: network, scheduling, the first decode step
	PerToken  time.Duration // per prompt token that has to be computed
	PerOutput time.Duration // per generated token
}

// DefaultCost returns 68 µs per computed prompt token and nothing else. The figure is one over 14,708.6 tokens/s, the
// prefill throughput of Qwen3-32B on H100 GPUs with LMCache on MultihopRAG (ContextPilot, Table 2). That
// throughput counts the few tokens that LMCache reused as well, so the true cost is somewhat higher. The table has
// no figures for a request's base time and for decoding, so these are 0.
func DefaultCost() Cost { return Cost{PerToken: 68 * time.Microsecond} }

func (c Cost) times(computed, output int) (ttft, total time.Duration) {
	ttft = c.Base + time.Duration(computed)*c.PerToken
	return ttft, ttft + time.Duration(output)*c.PerOutput
}
