package contextpilot

import (
	"slices"

	"github.com/ragpilot/ragpilot/internal/markup"
	"github.com/ragpilot/ragpilot/internal/tree"
)

// Kept is a message that stays in a conversation whose history is cut.
type Kept struct {
	// Request is the ID of the plan that the message was rendered from; empty for answers and other messages.
	Request string
	// Text is the message as it is going to be sent from now on.
	Text string
}

// Forget tells that messages have left a conversation, which is scope's tenant's. What stands unchanged at the front, up
// to the turn of request after and its answer, is still a prefix that the engine may have cached; empty: no turn does.
// Behind it now stand the kept messages, oldest first, and nothing else. Blocks that neither shows are forgotten: they are
// sent in full when they are retrieved again, and their number is returned.
//
// Plan compares with the messages in any case, so that a reference never depends on Forget. With it the pilot also
// knows which part of the cut prompt is still cached, and which turn shows a block that was moved.
func (p *Pilot) Forget(scope Scope, session, after string, kept ...Kept) (forgotten int) {
	s := p.sessions.find(sessionID{scope.Tenant, session})
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forget(after, kept, p.cfg.Tokenizer.Count)
}

// moved is where a block stands after a cut.
type moved struct {
	label   string
	content content
}

func (s *session) forget(after string, kept []Kept, tokens func(string) int) (forgotten int) {
	at := s.last(after)
	front := 0 // turns up to this number stand as they stood
	if after != "" && at >= 0 {
		front = s.turns[at].number
	}
	standing := map[moved]string{} // → request
	texts := make([]string, len(kept))
	for i, k := range kept {
		texts[i] = k.Text
		for r := range markup.Regions(k.Text) {
			if m := (moved{r.Label, contentOf(r.Text)}); standing[m] == "" {
				standing[m] = k.Request
			}
		}
	}
	for mark, b := range s.shown {
		if b.turn <= front {
			continue
		}
		request, ok := standing[moved{b.label, b.content}]
		if !ok {
			delete(s.shown, mark)
			forgotten++
			continue
		}
		s.move(mark, b, request)
	}
	for i := range s.turns {
		if s.turns[i].number > front {
			s.turns[i].end, s.turns[i].said = 0, 0
		}
	}
	s.path, s.undo = s.cutPath(after, at, texts, tokens), nil
	return forgotten
}

// move makes a block one of the turn of request, if that is another one and known.
func (s *session) move(mark content, b shownBlock, request string) {
	i := s.last(request)
	if i < 0 || request == b.request {
		return
	}
	b.turn, b.request = s.turns[i].number, request
	s.shown[mark] = b
	s.turns[i].blocks = append(s.turns[i].blocks, mark)
}

// cutPath returns the path of a conversation that was cut: what stands at its front, then texts that the index has not
// seen there. nil if the front is not known.
func (s *session) cutPath(after string, at int, texts []string, tokens func(string) int) []tree.Elem {
	end := 0
	if after != "" {
		if at < 0 || !s.ends(&s.turns[at]) {
			return nil
		}
		end = s.turns[at].end
	}
	path := slices.Clone(s.path[:end])
	if len(texts) > 0 {
		path = append(path, unseen(texts, tokens))
	}
	return path
}
