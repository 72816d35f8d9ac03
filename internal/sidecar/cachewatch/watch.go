package cachewatch

import (
	"context"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// seen is the state of a publisher as it was logged last.
type seen struct {
	connected, complete, failed, mismatch bool
	hint                                  string
	connects                              uint64
}

// watch logs changes until ctx ends.
func (e *engine) watch(ctx context.Context) {
	tick := time.NewTicker(e.fleet.f.opt.Every)
	defer tick.Stop()
	var known map[kvevents.Publisher]seen
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		e.totals() // publishers may be forgotten before the metrics are asked for
		_, list, at := e.status()
		known = e.logAll(known, list, at)
	}
}

// logAll logs what has changed of all publishers, and returns what was logged of those that there are. One that comes back is a new
// one.
func (e *engine) logAll(known map[kvevents.Publisher]seen, list []kvevents.Status, at map[string]published) map[kvevents.Publisher]seen {
	now := make(map[kvevents.Publisher]seen, len(list))
	for i := range list {
		s := &list[i]
		now[s.Publisher] = e.logChange(known[s.Publisher], s, at[s.Source].Endpoint)
	}
	return now
}

// logChange logs what has changed of a publisher.
func (e *engine) logChange(was seen, s *kvevents.Status, endpoint string) seen {
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
	if s.Connects != was.connects { // it may have been restarted, as another version
		e.look()
	}
	if n := len(s.Windows); s.Complete != was.complete && n > 0 {
		w := s.Windows[n-1]
		if s.Complete {
			after := w.Length(time.Now()).Round(time.Millisecond)
			log.Info("cache events: complete", "after", after, "cause", w.Cause, "missing", w.Missing)
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

// mismatch reports whether no cache of the fleet that anything was heard of stores blocks of prompts, though there are such caches.
func (e *engine) mismatch() bool {
	all := e.fleet.group.Stats()
	found := false
	for i := range all {
		switch {
		case all[i].Mismatch:
			found = true
		case !all[i].Silent:
			return false
		}
	}
	return found
}
