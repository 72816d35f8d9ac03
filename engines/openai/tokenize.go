package openai

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// Defaults of [TokenizerConfig].
const (
	DefaultTokenizeTimeout = 200 * time.Millisecond
	DefaultCacheTexts      = 16384
	DefaultMaxFailures     = 3
	DefaultBackoff         = time.Second
	DefaultMaxBackoff      = time.Minute
)

// TokenizerConfig holds the limits of a [Tokenizer]. The zero value is the recommended setup; 0 means the
// default in every field, and negative values are refused.
type TokenizerConfig struct {
	// Timeout bounds one Count, all tries to find the endpoint included.
	Timeout time.Duration
	// CacheTexts is the number of texts whose counts are remembered, about 250 bytes each.
	CacheTexts int
	// MaxFailures is the number of failures in a row after which the engine is left in peace for Backoff. The
	// pause doubles up to MaxBackoff until an answer comes.
	MaxFailures         int
	Backoff, MaxBackoff time.Duration
}

// TokenizerStats says where a Tokenizer's counts came from. Counters are since its construction.
type TokenizerStats struct {
	Cached    uint64 // counts answered from the cache
	Asked     uint64 // counts that the engine gave
	Estimated uint64 // counts that contextpilot.Estimate gave, because the engine failed or was not asked
	Failures  uint64 // questions that the engine did not answer in time, or not usefully
	Texts     int    // texts in the cache now
	Pausing   bool   // the engine is not being asked at the moment
}

// Tokenizer counts tokens as the engine itself does, by its /tokenize endpoint, without the special tokens that
// stand around a whole prompt. It knows the endpoints of vLLM, SGLang and llama.cpp and finds out which one
// answers. Counts are cached. Whenever the engine does not answer it estimates, so Count never fails; it blocks
// for at most TokenizerConfig.Timeout, and not at all during a pause after repeated failures.
//
// A Tokenizer is safe for concurrent use and starts no goroutine.
type Tokenizer struct {
	ask    *asker
	cache  *countCache
	pause  *breaker
	limits TokenizerConfig

	cached, asked, estimated, failures atomic.Uint64
}

var _ contextpilot.Tokenizer = (*Tokenizer)(nil)

// Tokenizer returns a tokenizer that asks this engine, with its client, model, key and headers. The engine is
// not contacted before the first Count.
func (e *Engine) Tokenizer(config TokenizerConfig) (*Tokenizer, error) {
	config.Timeout = cmp.Or(config.Timeout, DefaultTokenizeTimeout)
	config.Backoff = cmp.Or(config.Backoff, DefaultBackoff)
	config.MaxBackoff = cmp.Or(config.MaxBackoff, DefaultMaxBackoff)
	config.CacheTexts = cmp.Or(config.CacheTexts, DefaultCacheTexts)
	config.MaxFailures = cmp.Or(config.MaxFailures, DefaultMaxFailures)
	for _, field := range []struct {
		name  string
		value int64
	}{
		{"Timeout", int64(config.Timeout)},
		{"Backoff", int64(config.Backoff)},
		{"MaxBackoff", int64(config.MaxBackoff)},
		{"CacheTexts", int64(config.CacheTexts)},
		{"MaxFailures", int64(config.MaxFailures)},
	} {
		if field.value < 0 {
			return nil, fmt.Errorf("openai: TokenizerConfig.%s %d is negative", field.name, field.value)
		}
	}
	if config.CacheTexts > 1<<30 {
		return nil, fmt.Errorf("openai: TokenizerConfig.CacheTexts %d is more than %d", config.CacheTexts, 1<<30)
	}
	return &Tokenizer{
		ask:    newAsker(e),
		cache:  newCountCache(config.CacheTexts),
		pause:  &breaker{limits: config},
		limits: config,
	}, nil
}

// Count returns the number of tokens of text.
func (t *Tokenizer) Count(text string) int {
	if text == "" {
		return 0
	}
	key := t.cache.key(text)
	if n, ok := t.cache.get(key); ok {
		t.cached.Add(1)
		return n
	}
	if round, ok := t.pause.allow(); ok {
		ctx, cancel := context.WithTimeout(context.Background(), t.limits.Timeout)
		defer cancel()
		if n, err := t.ask.count(ctx, text); err == nil {
			t.pause.succeeded()
			t.asked.Add(1)
			t.cache.put(key, n)
			return n
		}
		t.failures.Add(1)
		if t.pause.failed(round) {
			// The engine may come back as another one.
			t.ask.forget()
		}
	}
	t.estimated.Add(1)
	return contextpilot.Estimate{}.Count(text)
}

// Stats returns the counters. They are read one after the other, so counts made meanwhile may show in some only.
func (t *Tokenizer) Stats() TokenizerStats {
	return TokenizerStats{
		Cached:    t.cached.Load(),
		Asked:     t.asked.Load(),
		Estimated: t.estimated.Load(),
		Failures:  t.failures.Load(),
		Texts:     t.cache.len(),
		Pausing:   t.pause.pausing(),
	}
}

// textKey stands for a text. The seeded hash keeps callers from making texts collide; the length is there because
// it costs nothing.
type textKey struct {
	hash   uint64
	length int
}

// countCache holds the token counts of the most recently used texts, without the texts. It has one lock; what it
// saves is a round trip to the engine, so the lock is never what takes long.
type countCache struct {
	seed   maphash.Seed
	mu     sync.Mutex
	counts *lru.Cache[textKey, int] // guarded by mu
}

func newCountCache(size int) *countCache {
	return &countCache{seed: maphash.MakeSeed(), counts: lru.New[textKey, int](size)}
}

func (c *countCache) key(text string) textKey {
	return textKey{maphash.String(c.seed, text), len(text)}
}

func (c *countCache) get(key textKey) (count int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts.Get(key)
}

func (c *countCache) put(key textKey, count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.Put(key, count)
}

func (c *countCache) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts.Len()
}
