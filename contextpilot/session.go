package contextpilot

import (
	"slices"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/internal/tree"
)

// session is what is remembered of a conversation: which blocks were shown in which turn, and the path its
// prompts have taken in the index.
type session struct {
	mu    sync.Mutex             // serialises the turns of one conversation; taken before a scope's lock
	turns []turn                 // that can still be taken back or referred to, oldest first
	count int                    // turns ever planned
	shown map[content]shownBlock // by mark
	path  []tree.Elem            // the whole prompt so far, in blocks; empty: nothing to continue
	undo  []tree.Elem            // path before the last turn
}

type turn struct {
	request string
	blocks  []content // marks first shown in this turn
}

// shownBlock is a block that stands in the conversation.
type shownBlock struct {
	label   string
	content content
	turn    int
	request string
}

// history is what a turn finds in front of its blocks.
type history struct {
	start   []tree.Elem // path from the root to where this turn's blocks begin
	visible map[string][]content
}

// look compares what is remembered with what is really being sent. What has left the messages is forgotten; the
// prompt continues the remembered path only if all of it is still there.
func (s *session) look(prior []string, tokens func(string) int) history {
	h := history{visible: visibleIn(prior)}
	whole := true
	for mark, b := range s.shown {
		if !slices.Contains(h.visible[b.label], b.content) {
			delete(s.shown, mark)
			whole = false
		}
	}
	switch {
	case len(prior) == 0:
		s.path = nil
	case whole && len(s.path) > 0:
		h.start = s.path
	default: // a history that the index has not seen: nothing can be shared behind it
		h.start = []tree.Elem{unseen(prior, tokens)}
	}
	return h
}

// unseen stands for a history of unknown blocks: one step that equals only itself.
func unseen(prior []string, tokens func(string) int) tree.Elem {
	e := tree.Elem{}
	for _, t := range prior {
		e.Key = xxh3.HashStringSeed(t, e.Key+1)
		e.Tokens += int32(tokens(t))
	}
	return e
}

// record notes a planned turn: the blocks it sends in full, and its path.
func (s *session) record(request string, sent []identified, path []tree.Elem) {
	s.count++
	t := turn{request: request}
	for _, b := range sent {
		if _, again := s.shown[b.mark]; again {
			continue
		}
		s.shown[b.mark] = shownBlock{label: b.label, content: b.content, turn: s.count, request: request}
		t.blocks = append(t.blocks, b.mark)
	}
	s.turns = append(s.turns, t)
	s.undo, s.path = s.path, path
	if len(path) > maxPath {
		s.path = nil // the next turn starts as if its history were unknown
	}
	for len(s.turns) > 1 && (len(s.shown) > maxShown || len(s.turns) > maxTurns) {
		s.drop(0)
	}
}

// drop forgets turn i of s.turns and what it showed.
func (s *session) drop(i int) {
	for _, mark := range s.turns[i].blocks {
		delete(s.shown, mark)
	}
	s.turns = slices.Delete(s.turns, i, i+1)
}

// takeBack undoes a turn that was never sent. The last turn's path is undone too, and its number is given again.
func (s *session) takeBack(request string) {
	i := slices.IndexFunc(s.turns, func(t turn) bool { return t.request == request })
	if i < 0 {
		return
	}
	if i == len(s.turns)-1 {
		s.path, s.undo = s.undo, nil
		s.count--
	}
	s.drop(i)
}

// answered lengthens the path by the tokens of an answer.
func (s *session) answered(request string, output int) {
	n := len(s.turns)
	if n == 0 || s.turns[n-1].request != request || len(s.path) == 0 {
		return
	}
	s.path = slices.Clone(s.path)
	s.path[len(s.path)-1].Tokens += int32(output)
}

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
