package runner

import "time"

// SetPace says how long computing a token of a prompt takes.
func (r *Runner) SetPace(pace time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pace = pace
}
