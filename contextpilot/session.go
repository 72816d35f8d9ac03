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
	undo  before                 // what the last turn changed besides
}

// before is what a turn replaced or forgot, to be put back if it is taken back.
type before struct {
	path []tree.Elem
	from int
	left map[content]shownBlock
}

type turn struct {
	request string
	number  int       // from 1
	end     int       // length of the path up to this turn's answer; 0: not known
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
	start   []tree.Elem            // path from the root to where this turn's blocks begin
	visible visible                // in the messages that are being sent
	left    map[content]shownBlock // remembered as shown, but not in the messages any more
}

// look compares what is remembered with what is really being sent, and changes nothing. The prompt continues the
// remembered path only if all that was shown is still there.
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
	switch {
	case len(prior) == 0:
	case len(h.left) == 0 && len(s.path) > 0:
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
		e.Tokens += tokenCount(tokens(t))
	}
	return e
}

// record notes a planned turn: the blocks it sends in full, those that had left the messages, and its path.
// It returns how many old turns were forgotten for their number.
func (s *session) record(request string, sent []identified, left map[content]shownBlock, path []tree.Elem) (dropped int) {
	s.count++
	for mark := range left {
		delete(s.shown, mark)
	}
	t := turn{request: request, number: s.count, end: len(path)}
	for _, b := range sent {
		if _, again := s.shown[b.mark]; again || len(t.blocks) == maxShown {
			continue
		}
		s.shown[b.mark] = shownBlock{label: b.label, content: b.content, turn: s.count, request: request}
		t.blocks = append(t.blocks, b.mark)
	}
	s.turns = append(s.turns, t)
	s.undo = before{s.path, s.from, left}
	if n := len(s.path); n == 0 || len(path) < n || !slices.Equal(path[:n], s.path) {
		s.from = s.count
	}
	s.path = path
	if len(path) > maxPath {
		s.path = nil // the next turn starts as if its history were unknown
	}
	for len(s.turns) > 1 && (len(s.shown) > maxShown || len(s.turns) > maxTurns) {
		s.drop(0)
		dropped++
	}
	return dropped
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

// takeBack undoes a turn that was never sent, as if it had never been planned; of a turn that others have followed
// only what it showed is undone.
func (s *session) takeBack(request string) {
	i := s.last(request)
	if i < 0 {
		return
	}
	if i == len(s.turns)-1 {
		s.count--
		s.drop(i)
		maps.Copy(s.shown, s.undo.left)
		s.path, s.from, s.undo = s.undo.path, s.undo.from, before{}
		return
	}
	s.drop(i)
}

// answered lengthens the path by the tokens of an answer, if it still ends with that request.
func (s *session) answered(request string, output int) {
	n := len(s.turns)
	last := len(s.path) - 1
	if n == 0 || s.turns[n-1].request != request || last < 0 || s.path[last].Key != ownKey(request) {
		return
	}
	s.path = slices.Clone(s.path)
	s.path[last].Tokens += tokenCount(output)
}
