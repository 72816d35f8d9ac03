package prefixdiff

import (
	"context"
	"sync"
)

// Recent keeps the last findings, for a program that shows why its prompts missed. It is safe for concurrent use.
type Recent struct {
	mu    sync.Mutex
	kept  []Finding
	next  int
	total int
}

// NewRecent keeps up to n findings; less than 1: 100.
func NewRecent(n int) *Recent {
	if n < 1 {
		n = 100
	}
	return &Recent{kept: make([]Finding, 0, n)}
}

// Add keeps a finding. It has the form of a callback of the frameworks' wrappers.
func (r *Recent) Add(_ context.Context, f Finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total++
	if len(r.kept) < cap(r.kept) {
		r.kept = append(r.kept, f)
		return
	}
	r.kept[r.next] = f
	r.next = (r.next + 1) % len(r.kept)
}

// Last returns what is kept, the oldest first, and how many findings there were in all.
func (r *Recent) Last() (findings []Finding, total int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	findings = append(findings, r.kept[r.next:]...)
	return append(findings, r.kept[:r.next]...), r.total
}
