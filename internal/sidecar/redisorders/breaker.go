package redisorders

import (
	"sync"
	"time"
)

// breaker decides whether Redis is asked: always while it answers; not for a while after some failures in a row; then
// one operation is let through, the probe, on which the rest depends. Safe for concurrent use.
type breaker struct {
	limit int // failures in a row
	pause time.Duration
	now   func() time.Time

	mu       sync.Mutex
	failures int // in a row, while it is closed
	open     bool
	probing  bool      // one is under way
	until    time.Time // no probe before
}

// outcome is how an operation ended.
type outcome int

const (
	answered outcome = iota
	failed           // an error, or nothing in time
	unknown          // it was given up before it ended, or was not started
)

// allow reports whether to ask; every true must be followed by one report, with the same probe.
func (b *breaker) allow() (ok, probe bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		return true, false
	}
	if b.probing || b.now().Before(b.until) {
		return false, false
	}
	b.probing = true
	return true, true
}

// report takes how an operation ended, and returns whether the breaker opened or closed by that. While it is open only the probe
// counts: what was asked before says nothing about now.
func (b *breaker) report(probe bool, o outcome) (turned bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if probe {
		b.probing = false
		switch o {
		case answered:
			b.open, b.failures = false, 0
			return true
		case failed:
			b.until = b.now().Add(b.pause)
		}
		return false
	}
	if b.open {
		return false
	}
	switch o {
	case answered:
		b.failures = 0
	case failed:
		b.failures++
		if b.failures >= b.limit {
			b.open, b.until = true, b.now().Add(b.pause)
			return true
		}
	}
	return false
}

func (b *breaker) isOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}

// failing reports whether the last answer did not come, as far as is known.
func (b *breaker) failing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open || b.failures > 0
}
