package local_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/local"
)

// ledger is what a subscriber knows.
type ledger struct {
	mu       sync.Mutex
	blocks   map[kvevents.Hash]bool // that are resident
	faults   []string
	resident map[string]int // tokens of requests that were served and are not gone
	gone     int
	cleared  int
}

func newLedger() *ledger {
	return &ledger{blocks: map[kvevents.Hash]bool{}, resident: map[string]int{}}
}

func (l *ledger) cache(events []kvevents.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		switch e.Kind {
		case kvevents.Stored:
			if l.blocks[e.Hashes[0]] || !e.Parent.IsZero() && !l.blocks[e.Parent] || len(e.Tokens) != 16 {
				l.faults = append(l.faults, fmt.Sprintf("stored %+v", e))
			}
			l.blocks[e.Hashes[0]] = true
		case kvevents.Removed:
			if !l.blocks[e.Hashes[0]] {
				l.faults = append(l.faults, fmt.Sprintf("removed %+v", e))
			}
			delete(l.blocks, e.Hashes[0])
		case kvevents.Cleared:
			clear(l.blocks)
			l.cleared++
		}
	}
}

func (l *ledger) requests(prompts map[string]int) func(...contextpilot.Event) {
	return func(events ...contextpilot.Event) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, e := range events {
			_, served := l.resident[e.Request]
			switch e.Kind {
			case contextpilot.Served:
				l.resident[e.Request] = prompts[e.Request] / 16 * 16
			case contextpilot.Shrunk:
				if served { // more may be left than was reported: others have stored it again
					l.resident[e.Request] = min(l.resident[e.Request], e.Tokens)
				}
			case contextpilot.Gone:
				if !served {
					l.faults = append(l.faults, fmt.Sprintf("%+v before it was served", e))
				}
				delete(l.resident, e.Request)
				l.gone++
			case contextpilot.Cleared:
				clear(l.resident)
			}
		}
	}
}

// What subscribers receive agrees with what the engine would find, request by request and block by block. That something is there
// again, since another request has stored it, is not reported.
func TestEvents(t *testing.T) {
	l := newLedger()
	e := open(t, 24, local.Config{OnCache: l.cache})
	prompts, tokens := map[string]int{}, map[string][]int32{}
	sink := l.requests(prompts)
	defer e.Subscribe(sink)()
	least := map[string]int{} // that was found since the request was served
	agree := func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if s := e.Stats(); len(l.blocks) != s.CachedBlocks || s.UsedBlocks != 0 {
			return false
		}
		found := map[string]int{}
		for id, prompt := range tokens {
			found[id] = e.Prefix(prompt, "")
			if before, ok := least[id]; ok {
				found[id] = min(found[id], before)
			}
			if found[id] != min(l.resident[id], (len(prompt)-1)/16*16) {
				return false
			}
		}
		least = found
		return true
	}
	for i := range 40 {
		req := ask(fmt.Sprint("request-", i), "The same beginning, for most of these requests. "+text(i/2*7, 20+13*i%120), 1+i%30)
		if i%5 == 0 {
			req.Messages[0].Content = text(i, 60)
		}
		l.mu.Lock()
		tokens[req.ID] = e.TokenizeChat(req.Messages)
		prompts[req.ID] = len(tokens[req.ID])
		l.mu.Unlock()
		generate(t, e, req)
		eventually(t, "events agree with the cache after "+req.ID, agree)
		if i == 25 {
			e.Clear()
			eventually(t, "events agree with the cache after Clear", agree)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone == 0 || l.cleared != 1 || len(l.faults) > 0 {
		t.Errorf("%d requests are gone, %d clearings, faults %v", l.gone, l.cleared, l.faults)
	}
	if s := e.Stats(); s.Evictions == 0 || s.ResidentRequests != len(l.resident) {
		t.Errorf("%+v, %d requests have something", s, len(l.resident))
	}
}
