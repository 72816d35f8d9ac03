package llamacpp_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/llamacpp"
)

// talk makes requests as applications do: several conversations in turn, each turn with passages of its own, some of
// which others have too, and now and then a single question.
type talk struct {
	random *rand.Rand
	chats  [][]engines.Message
	asked  int
}

func newTalk(seed uint64, chats int) *talk {
	return &talk{random: rand.New(rand.NewPCG(seed, 1)), chats: make([][]engines.Message, chats)}
}

// next returns the next request, and where its answer belongs.
func (k *talk) next() (req engines.Request, chat int) {
	k.asked++
	chat = k.random.IntN(len(k.chats))
	if len(k.chats[chat]) > 7 || k.random.IntN(12) == 0 {
		k.chats[chat] = nil
	}
	if k.chats[chat] == nil {
		k.chats[chat] = []engines.Message{{Role: engines.System, Content: fmt.Sprintf("Answer from the passages. (%d)", k.random.IntN(2))}}
	}
	text := ""
	for range 1 + k.random.IntN(4) {
		text += passage(k.random.IntN(6))
	}
	k.chats[chat] = append(k.chats[chat], engines.Message{Role: engines.User, Content: text + fmt.Sprintf("Question %d?", k.random.IntN(4))})
	return engines.Request{
		ID: fmt.Sprintf("r%d", k.asked), Messages: k.chats[chat], MaxTokens: 1 + k.random.IntN(24),
	}, chat
}

func (k *talk) answered(chat int, text string) {
	k.chats[chat] = append(k.chats[chat], engines.Message{Role: engines.Assistant, Content: text})
}

// Without a host cache the server reports, for each of 200 requests, exactly what was predicted; also after restarts.
func TestRealPredictionIsExact(t *testing.T) {
	s := startServer(t, "--parallel", "4", "--cache-ram", "0")
	engine, l := s.engine(nil)
	k := newTalk(1, 6)
	reused, slots := 0, map[int]bool{}
	for i := range 200 {
		restarted := i == 70 || i == 140
		if restarted {
			s.restart()
		}
		req, chat := k.next()
		response := ask(t.Context(), t, engine, req)
		k.answered(chat, response.Text)
		p := l.of(req.ID)
		if !p.Exact || p.Cached != response.Usage.CachedTokens || p.Prompt != response.Usage.PromptTokens {
			t.Errorf("request %d: predicted %+v, usage %+v", i, p, response.Usage)
		}
		if restarted && p.Cached != 0 {
			t.Errorf("request %d, after a restart: predicted %+v", i, p)
		}
		reused += p.Cached
		slots[p.Slot] = true
	}
	if reused == 0 || len(slots) != 4 {
		t.Errorf("%d tokens reused on %d slots: the test shows nothing", reused, len(slots))
	}
	if stats := engine.Stats(); stats.Equal != 200 || stats.Restarts != 2 || l.count(contextpilot.Cleared) != 2 {
		t.Errorf("stats %+v, %d Cleared events", stats, l.count(contextpilot.Cleared))
	}
	t.Logf("%d tokens reused, stats %+v, events %v", reused, engine.Stats(), l.kinds)
}

// What the events leave of a request is what it would find on the best slot if it were sent again: when the event comes exactly,
// and later at least, because other requests may bring back what was lost.
func TestRealEventsTellWhatIsLeft(t *testing.T) {
	s := startServer(t, "--parallel", "3", "--cache-ram", "0")
	engine, l := s.engine(nil)
	k := newTalk(2, 5)
	sent := map[string]engines.Request{}
	whole, parts := 0, 0
	for range 60 {
		req, chat := k.next()
		req.Messages = slices.Clone(req.Messages)
		l.lost = nil
		k.answered(chat, ask(t.Context(), t, engine, req).Text)
		sent[req.ID] = req
		for id, left := range l.resident {
			now := slices.Contains(l.lost, id)
			if !now && k.random.IntN(8) > 0 {
				continue // to ask for all takes long
			}
			var p llamacpp.Prediction
			for slot := range 3 {
				again := sent[id]
				again.Extra = map[string]json.RawMessage{"id_slot": json.RawMessage(strconv.Itoa(slot))}
				here, err := engine.Predict(t.Context(), again)
				if err != nil {
					t.Fatal(err)
				}
				if slot == 0 || here.Cached > p.Cached {
					p = here
				}
			}
			if want := min(left, p.Prompt-1); p.Cached < want || now && p.Cached != want {
				t.Errorf("after %s: %d tokens of %s are left by the events, %+v is predicted", req.ID, left, id, p)
			}
			switch {
			case left == p.Prompt:
				whole++
			case now:
				parts++
			}
		}
	}
	if whole == 0 || parts == 0 {
		t.Errorf("%d whole and %d shrunk requests seen: the test shows nothing", whole, parts)
	}
	t.Logf("%d whole and %d shrunk requests seen, events %v", whole, parts, l.kinds)
}

// With the host cache the server finds what is predicted, or more.
func TestRealHostCacheIsAbove(t *testing.T) {
	for name, args := range map[string][]string{
		"own memory":    {"--parallel", "2"},
		"shared memory": nil, // 4 slots, and idle ones are saved and emptied
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, args...)
			engine, l := s.engine(nil)
			k := newTalk(3, 6)
			for i := range 80 {
				if i == 40 {
					s.restart()
				}
				req, chat := k.next()
				response := ask(t.Context(), t, engine, req)
				k.answered(chat, response.Text)
				if p := l.of(req.ID); p.Cached > response.Usage.CachedTokens {
					t.Errorf("request %d: predicted %+v, usage %+v", i, p, response.Usage)
				}
			}
			stats := engine.Stats()
			if stats.Equal+stats.Above != 80 || stats.Above == 0 || stats.Restarts != 1 {
				t.Errorf("stats %+v", stats)
			}
			t.Logf("stats %+v, events %v", stats, l.kinds)
		})
	}
}
