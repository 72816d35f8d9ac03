package cachewatch

import (
	"sync/atomic"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// counts are about prompts, since the start.
type counts struct {
	followed, learned, missing, unknown atomic.Uint64
	lost, shrunk, cleared               atomic.Uint64
}

// Snapshot is what is known now.
type Snapshot struct {
	Prompts Prompts `json:"prompts"`
	Sources []State `json:"sources"`
}

// Prompts counts prompts since the start.
type Prompts struct {
	Followed uint64 `json:"followed"` // that went to an engine whose events are followed, and whose tokens can be had
	Learned  uint64 `json:"learned"`  // of these, those whose tokens came and are registered
	Missing  uint64 `json:"missing"`  // of these, those whose tokens did not come
	Unknown  uint64 `json:"unknown"`  // whose tokens cannot be had, so that they are not followed
	Shrunk   uint64 `json:"shrunk"`   // times that a prompt has lost a part
	Lost     uint64 `json:"lost"`     // times that nothing was left of one
	Cleared  uint64 `json:"cleared"`  // times that all was
}

// State is what is known of one publisher of cache events, and of its cache.
type State struct {
	Engine    string `json:"engine"`
	Source    string `json:"source"` // the engine, or one of its ranks
	Topic     string `json:"topic,omitempty"`
	Version   string `json:"version,omitempty"` // of the engine
	Connected bool   `json:"connected"`
	Complete  bool   `json:"complete"` // everything that the engine has published is known
	Batches   uint64 `json:"batches"`
	Events    uint64 `json:"events"`
	Replayed  uint64 `json:"replayed"` // batches that came late, because they were asked for
	Connects  uint64 `json:"connects"`
	Gaps      uint64 `json:"gaps"`
	Holes     uint64 `json:"holes"` // batches that never came
	Restarts  uint64 `json:"restarts"`
	Clears    uint64 `json:"clears"`
	Unread    uint64 `json:"unread"` // messages and events that could not be read
	// Windows are the latest times in which something was missing, oldest first.
	Windows []Window `json:"windows"`
	Error   string   `json:"error,omitempty"`
	Hint    string   `json:"hint,omitempty"`
}

// Window is a time in which the picture was not complete.
type Window struct {
	From    time.Time  `json:"from"`
	Until   *time.Time `json:"until"` // nil: it lasts
	Cause   string     `json:"cause"`
	Missing uint64     `json:"missing"` // batches, for good
}

func (f *Follower) prompts() Prompts {
	c := &f.counts
	return Prompts{
		Followed: c.followed.Load(), Learned: c.learned.Load(), Missing: c.missing.Load(), Unknown: c.unknown.Load(),
		Shrunk: c.shrunk.Load(), Lost: c.lost.Load(), Cleared: c.cleared.Load(),
	}
}

// Snapshot returns what is known now; nil if no engine is followed.
func (f *Follower) Snapshot() *Snapshot {
	g := f.now.Load()
	if g == nil {
		return nil
	}
	s := &Snapshot{Prompts: f.prompts(), Sources: []State{}}
	for _, fl := range g.fleets {
		for _, e := range fl.engines {
			_, list, _ := e.status()
			for i := range list {
				s.Sources = append(s.Sources, e.state(&list[i]))
			}
			if len(list) == 0 {
				s.Sources = append(s.Sources, State{Engine: e.cfg.Name, Source: e.cfg.Name, Windows: []Window{}})
			}
		}
	}
	return s
}

func (e *engine) state(s *kvevents.Status) State {
	out := State{
		Engine: e.cfg.Name, Source: s.Source, Topic: s.PublishedTopic, Version: e.features().version, Connected: s.Connected,
		Complete: s.Complete, Batches: s.Batches, Events: s.Events, Replayed: s.Replayed, Connects: s.Connects, Gaps: s.Gaps,
		Holes:    s.Holes,
		Restarts: s.Restarts, Clears: s.Clears, Unread: unread(s), Hint: s.Hint,
		Windows: make([]Window, len(s.Windows)),
	}
	for i, w := range s.Windows {
		out.Windows[i] = Window{From: w.From, Cause: w.Cause.String(), Missing: w.Missing}
		if !w.Until.IsZero() {
			out.Windows[i].Until = &w.Until
		}
	}
	if s.Err != nil {
		out.Error = s.Err.Error()
	}
	return out
}

func unread(s *kvevents.Status) uint64 { return s.BadFrames + s.DecodeErrors + s.Malformed }
