package contextpilot

import (
	"sync"
	"time"
)

// sessions is the table of conversations, bounded by number and age.
type sessions struct {
	mu      sync.Mutex
	byID    map[sessionID]*sessionEntry
	newest  *sessionEntry
	oldest  *sessionEntry
	max     int
	ttl     time.Duration
	dropped int // forgotten so far, for age or number
}

// sessionID keeps the conversations of tenants apart; a conversation may move between replicas and models.
type sessionID struct{ tenant, id string }

type sessionEntry struct {
	session
	id           sessionID
	used         time.Time
	older, newer *sessionEntry
}

func newSessions(limit int, ttl time.Duration) *sessions {
	return &sessions{byID: map[sessionID]*sessionEntry{}, max: limit, ttl: ttl}
}

// get returns the session, making it if it is new, and forgets what is too old or too many.
func (t *sessions) get(id sessionID, now time.Time) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.oldest != nil && now.Sub(t.oldest.used) > t.ttl {
		t.remove(t.oldest)
	}
	e := t.byID[id]
	if e == nil {
		e = &sessionEntry{id: id, session: session{shown: map[content]shownBlock{}}}
		t.byID[id] = e
	} else {
		t.unlink(e)
	}
	e.used = now
	t.link(e)
	for len(t.byID) > t.max {
		t.remove(t.oldest)
	}
	return &e.session
}

// find returns the session if it is known.
func (t *sessions) find(id sessionID) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.byID[id]; e != nil {
		return &e.session
	}
	return nil
}

// peek returns the session that get would find, and leaves its age as it is.
func (t *sessions) peek(id sessionID, now time.Time) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.byID[id]; e != nil && now.Sub(e.used) <= t.ttl {
		return &e.session
	}
	return nil
}

func (t *sessions) end(id sessionID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byID[id]
	if e != nil {
		t.unlink(e)
		delete(t.byID, id)
	}
	return e != nil
}

func (t *sessions) dropTenant(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, e := range t.byID {
		if id.tenant == name {
			t.unlink(e)
			delete(t.byID, id)
		}
	}
}

func (t *sessions) remove(e *sessionEntry) {
	t.unlink(e)
	delete(t.byID, e.id)
	t.dropped++
}

func (t *sessions) link(e *sessionEntry) {
	e.older, e.newer = t.newest, nil
	if t.newest != nil {
		t.newest.newer = e
	} else {
		t.oldest = e
	}
	t.newest = e
}

func (t *sessions) unlink(e *sessionEntry) {
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		t.oldest = e.newer
	}
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		t.newest = e.older
	}
	e.older, e.newer = nil, nil
}

func (t *sessions) stats() (live, dropped int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID), t.dropped
}
