package upstream

import (
	"fmt"
	"slices"
	"time"

	"github.com/ragpilot/ragpilot/engines/sim"
)

// Defaults of [Options].
const (
	DefaultModel   = "sim"
	DefaultTokens  = 16
	DefaultMaxBody = 64 << 20 // bytes
)

// MaxTokens bounds the length of an answer, whatever a request asks for.
const MaxTokens = 1 << 17

// Options configures a [Server]. The zero value answers at once from a cache that never fills.
type Options struct {
	// Model is the name that /v1/models and answers give; empty: [DefaultModel]. Requests may name any.
	Model string
	// CapacityTokens is the size of the prefix cache, 0 or less: unlimited; see [sim.Options].
	CapacityTokens int
	// BlockTokens is the size of a cache block; 0 or less: [sim.DefaultBlockTokens].
	BlockTokens int

	// Reply is what answers say; empty: [Numbered].
	Reply Reply
	// Tokens is the length of Numbered and Lorem answers, and a bound for Echo. 0 or less: as many as the request
	// allows (max_completion_tokens or max_tokens), and if it sets no limit [DefaultTokens], or all that there is to echo.
	Tokens int

	// Delay is the time from a request's admission to the cache to its first token.
	Delay time.Duration
	// Cost, if not nil, adds the time that its Base and PerToken give for the tokens that the cache does not hold when
	// the request arrives. Each prompt is then tokenised twice more.
	Cost *sim.Cost
	// TokenDelay is the time from one token to the next.
	TokenDelay time.Duration

	// MaxBody bounds a request's body in bytes; 0 or less: [DefaultMaxBody].
	MaxBody int64
	// Stub answers every request with a fixed word at once, without cache, delays, IDs or the decoding of bodies.
	Stub bool

	// Evict, if not nil, receives what the cache has lost. It is called by one goroutine at a time and must not block.
	// A cache without a capacity loses nothing.
	Evict func(lost ...Eviction)
	// EvictRule says when a request counts as lost; empty: [OwnLost].
	EvictRule EvictRule
	// EngineIDs gives Evict the IDs that vLLM has inside, chatcmpl-ID-HEX and cmpl-ID-0-HEX, in place of the client's.
	EngineIDs bool
}

// Validate names the first field that makes no sense, as the command line calls it. [New] takes the default in its place.
func (o Options) Validate() error {
	if o.Reply != "" && !slices.Contains(Replies(), o.Reply) {
		return fmt.Errorf("reply %q: want one of %v", o.Reply, Replies())
	}
	if o.EvictRule != "" && !slices.Contains(EvictRules(), o.EvictRule) {
		return fmt.Errorf("evict-rule %q: want one of %v", o.EvictRule, EvictRules())
	}
	if o.Tokens > MaxTokens {
		return fmt.Errorf("tokens %d: want at most %d", o.Tokens, MaxTokens)
	}
	if o.Delay < 0 {
		return fmt.Errorf("delay %v: must not be negative", o.Delay)
	}
	if o.TokenDelay < 0 {
		return fmt.Errorf("token-delay %v: must not be negative", o.TokenDelay)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Model == "" {
		o.Model = DefaultModel
	}
	if !slices.Contains(Replies(), o.Reply) {
		o.Reply = Numbered
	}
	if !slices.Contains(EvictRules(), o.EvictRule) {
		o.EvictRule = OwnLost
	}
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.Cost != nil {
		cost := *o.Cost
		o.Cost = &cost
	}
	return o
}
