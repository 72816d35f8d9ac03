package testkit

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// Log is a buffer that can be read while it is written. Safe for concurrent use; the zero Log is ready.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

// Write appends to the text.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Patience is how long [Eventually] waits. Nothing takes that long when all is well.
const Patience = time.Minute

// Eventually waits until a condition holds that no channel signals, and ends the test if it does not hold within [Patience].
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(Patience); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s: did not happen within %v", what, Patience)
		}
	}
}

// Contains reports each of the parts that is not in a text.
func Contains(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: %q is not in\n%s", what, part, text)
		}
	}
}
