package dispatch

import (
	"maps"
	"time"
)

// Stats says what a [Dispatcher] has done, and does now.
type Stats struct {
	Replicas []ReplicaStats
	Runs     int     // under way
	Paused   bool    //
	Spent    float64 // Config.Spent included
}

// ReplicaStats are those of one replica.
type ReplicaStats struct {
	Name     string
	InFlight int
	Limit    int // calls that it may have in flight
	Resting  bool
	Runs     int            // under way on it
	Calls    int            // attempts that began
	Answers  int            // attempts that ended with an answer
	Errors   map[string]int // by kind, see KindBusy and the others
	// PromptTokens are those of all answers, CachedTokens the part of them that was not computed.
	PromptTokens, CachedTokens, OutputTokens int
	// Rate is the number of answers per second since the first call.
	Rate float64
}

// Stats returns the state at one moment.
func (d *Dispatcher) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	s := Stats{Replicas: make([]ReplicaStats, len(d.replicas)), Paused: d.paused, Spent: d.purse.spent}
	for i, r := range d.replicas {
		x := r.stats
		x.Name, x.InFlight, x.Limit, x.Runs = r.Name, r.flying, r.limiter.places(), len(r.runs)
		x.Resting = now.Before(r.rest)
		x.Errors = maps.Clone(x.Errors)
		if elapsed := now.Sub(r.began); !r.began.IsZero() && elapsed > 0 {
			x.Rate = float64(x.Answers) / elapsed.Seconds()
		}
		s.Runs += x.Runs
		s.Replicas[i] = x
	}
	return s
}

func (s *ReplicaStats) count(kind string) {
	if s.Errors == nil {
		s.Errors = map[string]int{}
	}
	s.Errors[kind]++
}
