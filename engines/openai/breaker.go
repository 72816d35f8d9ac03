package openai

import (
	"sync"
	"time"
)

// breaker keeps a tokenizer from asking an engine that does not answer. After MaxFailures failures in a row it
// allows one question per pause, and pauses get longer until one is answered.
type breaker struct {
	limits TokenizerConfig

	mu       sync.Mutex
	failures int           // in a row; guarded by mu, like all below
	round    int           // number of pauses so far
	wait     time.Duration // length of the pause under way
	until    time.Time     // its end
}

// allow reports whether the engine may be asked now. round goes to failed if it does not answer.
func (b *breaker) allow() (round int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < b.limits.MaxFailures {
		return b.round, true
	}
	now := time.Now()
	if now.Before(b.until) {
		return b.round, false
	}
	// Until this question is answered, all others estimate.
	b.until = now.Add(b.limits.Timeout)
	return b.round, true
}

func (b *breaker) succeeded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.wait, b.until = 0, 0, time.Time{}
}

// failed notes a failure and reports whether it began or prolonged a pause. Questions that were under way when a
// pause began say nothing new when they fail too.
func (b *breaker) failed(round int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if round != b.round {
		return false
	}
	b.failures++
	if b.failures < b.limits.MaxFailures {
		return false
	}
	b.round++
	b.wait = min(max(2*b.wait, b.limits.Backoff), b.limits.MaxBackoff)
	b.until = time.Now().Add(b.wait)
	return true
}

func (b *breaker) pausing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures >= b.limits.MaxFailures && time.Now().Before(b.until)
}
