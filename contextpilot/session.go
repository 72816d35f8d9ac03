package contextpilot

import (
	"maps"
	"slices"
	"sync"

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
	from  int                    // number of the first turn that continued path; what ends earlier ones had is not known
	undo  []before               // what the last turns changed besides, at most maxUndo of them, oldest first
}

// before is what a turn replaced or forgot, to be put back if it is taken back, and where it was sent.
type before struct {
	scope Scope
	count int
	path  []tree.Elem
	from  int
	left  map[content]shownBlock
}

type turn struct {
	request string
	number  int       // from 1
	end     int       // length of the path up to this turn's answer; 0: not known
	blocks  []content // marks first shown in this turn
	served  bool      // it was answered: its messages can stand in the conversation
	said    int       // bytes of the messages in front of it; 0: not known, or none
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
	said    int                    // bytes of the messages
	start   []tree.Elem            // path from the root to where this turn's blocks begin
	visible visible                // in the messages that are being sent
	left    map[content]shownBlock // remembered as shown, but not in the messages any more
}

// look compares what is remembered with what is really being sent, and changes nothing. The prompt continues the
// remembered path if all that was shown is still there; where the last turns are asked again, up to the turn in front of
// them.
func (s *session) look(prior []string, tokens func(string) int) history {
	h := history{visible: visibleIn(prior)}
	for mark, b := range s.shown {
		if h.visible.has(b.label, b.content) {
			continue
		}
		if h.left == nil {
			h.left = map[content]shownBlock{}
		}
		h.left[mark] = b
	}
	for _, t := range prior {
		h.said += len(t)
	}
	at := len(s.turns) - 1 // the last turn that can stand in the messages
	for at >= 0 && s.turns[at].said >= h.said {
		at--
	}
	switch {
	case len(prior) == 0:
	case at == len(s.turns)-1 && len(h.left) == 0 && len(s.path) > 0:
		h.start = s.path
	case at >= 0 && at < len(s.turns)-1 && s.turns[at+1].said == h.said && s.stands(at, h.left): // as long as it was then
		end := s.turns[at].end
		h.start = s.path[:end:end]
	default: // a history that the index has not seen: nothing can be shared behind it
		h.start = []tree.Elem{unseen(prior, tokens)}
	}
	return h
}

// stands reports whether all that turns up to i have shown is still there, and where the path of turn i ends is known.
func (s *session) stands(i int, left map[content]shownBlock) bool {
	t := &s.turns[i]
	for _, b := range left {
		if b.turn <= t.number {
			return false
		}
	}
	return s.ends(t)
}

// ends reports whether the path that is remembered passes the end of a turn.
func (s *session) ends(t *turn) bool { return t.number >= s.from && t.end > 0 && t.end <= len(s.path) }

// unseen stands for a history of unknown blocks: one step that equals only itself.
func unseen(prior []string, tokens func(string) int) tree.Elem {
	e := tree.Elem{}
	for _, t := range prior {
		e.Key = xxh3.HashStringSeed(t, e.Key+1)
		e.Tokens += tokenCount(tokens(t))
	}
	return e
}

// record notes a planned turn: the blocks it sends in full, those that had left the messages, and its path, which is
// not changed any more. It returns how many old turns were forgotten for their number.
func (s *session) record(scope Scope, request string, said int, sent []identified, left map[content]shownBlock, path []tree.Elem) (dropped int) {
	s.count++
	for mark := range left {
		delete(s.shown, mark)
	}
	t := turn{request: request, number: s.count, end: len(path), said: said}
	for _, b := range sent {
		if _, again := s.shown[b.mark]; again || len(t.blocks) == maxShown {
			continue
		}
		s.shown[b.mark] = shownBlock{label: b.label, content: b.content, turn: s.count, request: request}
		t.blocks = append(t.blocks, b.mark)
	}
	was := before{scope, s.count - 1, s.path, s.from, left}
	switch n := common(path, s.path); {
	case n > 0 && n == len(s.path):
		was.path = path[:n:n] // one array for both
	case !s.branch(n):
		s.from = s.count
	}
	s.turns = append(s.turns, t)
	s.undo = append(s.undo, was)
	if len(s.undo) > maxUndo {
		s.undo = slices.Delete(s.undo, 0, 1)
	}
	s.path = path
	if len(path) > maxPath {
		s.path = nil // the next turn starts as if its history were unknown
	}
	for len(s.turns) > 1 && (len(s.shown) > maxShown || len(s.turns) > maxTurns) {
		s.drop(0)
		dropped++
	}
	if n := len(s.undo) - len(s.turns); n > 0 {
		s.undo = slices.Delete(s.undo, 0, n)
	}
	return dropped
}

// common returns how many elements a and b begin with alike.
func common(a, b []tree.Elem) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// branch reports whether a path that shares n elements with the one that is remembered goes on where a turn ended. The ends of
// the turns behind that one are not known any more.
func (s *session) branch(n int) (ok bool) {
	for i := range s.turns {
		ok = ok || s.ends(&s.turns[i]) && s.turns[i].end <= n
	}
	for i := range s.turns {
		if ok && s.turns[i].end > n {
			s.turns[i].end = 0
		}
	}
	return ok
}

// drop forgets turn i of s.turns and what it showed.
func (s *session) drop(i int) {
	for _, mark := range s.turns[i].blocks {
		if s.shown[mark].request == s.turns[i].request { // else a later turn has shown it again
			delete(s.shown, mark)
		}
	}
	s.turns = slices.Delete(s.turns, i, i+1)
}

// last returns the index in s.turns of the last turn with that ID, or −1.
func (s *session) last(request string) int {
	i := len(s.turns) - 1
	for i >= 0 && s.turns[i].request != request {
		i--
	}
	return i
}

// sentTo returns where the last turn with that ID went, if it is one of the last turns.
func (s *session) sentTo(request string) (Scope, bool) {
	if i := s.last(request); i >= 0 && s.undone(i) >= 0 {
		return s.undo[s.undone(i)].scope, true
	}
	return Scope{}, false
}

// undone returns the index in s.undo of turn i of s.turns; it is negative if what that turn changed is not known any more.
func (s *session) undone(i int) int { return i - (len(s.turns) - len(s.undo)) }

// takeBack undoes a turn that was never sent, as if it had never been planned; of a turn that others have followed
// what it showed is undone, and what it changed besides when the others are taken back, too. Only what [session.branch] has
// forgotten stays unknown.
func (s *session) takeBack(request string) {
	i := s.last(request)
	if i < 0 {
		return
	}
	at := s.undone(i)
	was := before{count: s.turns[i].number - 1} // the rest is not known: nothing to continue
	if at >= 0 {
		was = s.undo[at]
		s.undo = slices.Delete(s.undo, at, at+1)
	}
	next := max(at, 0)
	if at < -1 { // nor does anybody know what the turn behind it changed
		next = len(s.undo)
	}
	s.drop(i)
	switch {
	case i == len(s.turns): // it was the last
		maps.Copy(s.shown, was.left)
		s.count, s.path, s.from = was.count, was.path, was.from
	case next < len(s.undo):
		for i := next + 1; i < len(s.undo); i++ {
			s.undo[i].without(was, request)
		}
		s.undo[next].instead(was, request)
	}
}

// without makes of what a later turn found to have left the messages, and request had shown, what was there before that.
func (b *before) without(was before, request string) {
	for mark, shown := range b.left {
		if shown.request != request {
			continue
		}
		if earlier, ok := was.left[mark]; ok {
			b.left[mark] = earlier
		} else {
			delete(b.left, mark)
		}
	}
}

// instead makes what a turn changed what it would have changed if the one before it, request, had not been: that turn found
// everything as was says.
func (b *before) instead(was before, request string) {
	b.count, b.path, b.from = was.count, was.path, was.from
	left := maps.Clone(was.left)
	for mark, shown := range b.left {
		if shown.request == request {
			continue
		}
		if left == nil {
			left = map[content]shownBlock{}
		}
		left[mark] = shown
	}
	b.left = left
}

// answered notes that a turn was answered, and lengthens the path by the tokens of the answer, if it still ends with that
// request.
func (s *session) answered(request string, output int) {
	i, last := s.last(request), len(s.path)-1
	if i < 0 {
		return
	}
	s.turns[i].served = true
	if output == 0 || i < len(s.turns)-1 || last < 0 || s.path[last].Key != ownKey(request) {
		return
	}
	s.path = slices.Clone(s.path)
	s.path[last].Tokens += tokenCount(output)
}
