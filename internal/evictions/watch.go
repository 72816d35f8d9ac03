package evictions

import (
	"context"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// seen is the state of a publisher that the log has told.
type seen struct {
	connected, complete, failed, mismatch bool
	hint                                  string
	connects                              uint64
}

// watch tells the log of changes until ctx ends.
func (e *engine) watch(ctx context.Context) {
	tick := time.NewTicker(e.f.opt.Every)
	defer tick.Stop()
	known := map[kvevents.Publisher]seen{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		list, at := e.status()
		for i := range list {
			s := &list[i]
			known[s.Publisher] = e.tell(known[s.Publisher], s, at[s.Source].Endpoint)
		}
	}
}

// tell logs what has changed of a publisher.
func (e *engine) tell(was seen, s *kvevents.Status, endpoint string) seen {
	log := e.log.With("source", s.Source, "endpoint", endpoint)
	switch {
	case s.Connected && !was.connected:
		log.Info("cache events: connected")
		was.failed = false
	case !s.Connected && was.connected:
		log.Warn("cache events: the connection was lost, trying again", "error", s.Err)
		was.failed = true
	case !s.Connected && s.Err != nil && !was.failed:
		log.Warn("cache events: no connection, trying again", "error", s.Err)
		was.failed = true
	}
	if s.Connects > was.connects { // it may have been restarted, as another version
		e.look()
	}
	if n := len(s.Windows); s.Complete != was.complete && n > 0 {
		w := s.Windows[n-1]
		if s.Complete {
			log.Info("cache events: complete", "after", w.Length(time.Now()).Round(time.Millisecond), "cause", w.Cause, "missing", w.Missing)
		} else {
			log.Warn("cache events: incomplete", "cause", w.Cause)
		}
	}
	if s.Hint != was.hint && s.Hint != "" {
		log.Warn("cache events: " + s.Hint)
	}
	mismatch := e.mismatch()
	if mismatch && !was.mismatch {
		log.Warn("no block of a prompt was ever stored: the tokens that are known are not the engine's")
	}
	was.connected, was.complete, was.hint, was.connects, was.mismatch = s.Connected, s.Complete, s.Hint, s.Connects, mismatch
	return was
}

// mismatch tells whether no cache of the fleet stores blocks of prompts, though all publish.
func (e *engine) mismatch() bool {
	all := e.fleet.group.Stats()
	for i := range all {
		if !all[i].Mismatch {
			return false
		}
	}
	return len(all) > 0
}
