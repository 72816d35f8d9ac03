package upstream

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/base/lru"
	"github.com/ragpilot/ragpilot/internal/openaiserver"
)

// Eviction says what a request has lost.
type Eviction struct {
	Request string
	// ResidentTokens is how much from the start of the prompt is still there, 0: nothing counts any more.
	ResidentTokens int
}

// EvictRule says when a request counts as lost. Real engines differ, and so do the hooks that speak for them.
type EvictRule string

// The rules.
const (
	// OwnLost: when all that the request newly stored is gone, as the reference's hook in vLLM has it. What the request
	// shares with earlier ones, such as a system prompt, may still be there.
	OwnLost EvictRule = "own"
	// FirstLoss: when the first part is gone, as the reference's hook in SGLang has it.
	FirstLoss EvictRule = "first"
	// EachLoss: each time that its resident prefix gets shorter, with what is left of it, as our plugin for vLLM has it.
	EachLoss EvictRule = "each"
)

// EvictRules returns all rules.
func EvictRules() []EvictRule { return []EvictRule{OwnLost, FirstLoss, EachLoss} }

// ledgerSize is how many requests a ledger knows; beyond it those are forgotten that were longest not heard of. It is
// twice what the engine follows.
const ledgerSize = 1 << 17

// ledger turns what the engine reports into evictions. It is safe for concurrent use.
type ledger struct {
	rule      EvictRule
	engineIDs bool
	report    func(lost ...Eviction)

	mu sync.Mutex
	at *lru.Cache[string, entry] // guarded by mu
}

// entry is what the ledger knows of a request.
type entry struct {
	kind   *openaiserver.Kind
	cached int  // tokens of its prompt that others had stored before; -1: not known yet
	lost   bool // its loss was reported
}

func newLedger(rule EvictRule, engineIDs bool, report func(...Eviction)) *ledger {
	return &ledger{rule: rule, engineIDs: engineIDs, report: report, at: lru.New[string, entry](ledgerSize)}
}

// begin makes a request known, and forgets an earlier one of this ID.
func (l *ledger) begin(id string, k *openaiserver.Kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at.Put(id, entry{kind: k, cached: -1})
}

// read notes how many tokens of its prompt a request read from the cache.
func (l *ledger) read(id string, cached int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.at.Get(id); ok && e.cached < 0 {
		e.cached = cached
		l.at.Put(id, e)
	}
}

// observe is a sink of the engine.
func (l *ledger) observe(events ...contextpilot.Event) {
	var lost []Eviction
	for _, e := range events {
		if e.Kind == contextpilot.Served {
			l.read(e.Request, e.Tokens)
			continue
		}
		if e.Kind == contextpilot.Shrunk || e.Kind == contextpilot.Gone {
			if x, ok := l.judge(e); ok {
				lost = append(lost, x)
			}
		}
	}
	if len(lost) > 0 {
		l.report(slices.Clip(lost)...)
	}
}

// judge decides whether a loss is reported.
func (l *ledger) judge(e contextpilot.Event) (Eviction, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.at.Get(e.Request)
	if !ok {
		known = entry{kind: &openaiserver.Chat, cached: -1}
	}
	out := Eviction{Request: e.Request}
	if l.engineIDs {
		out.Request = engineID(e.Request, known.kind)
	}
	if e.Kind == contextpilot.Gone {
		l.at.Delete(e.Request)
		return out, !known.lost
	}
	switch l.rule {
	case EachLoss:
		out.ResidentTokens = e.Tokens
		return out, true
	case OwnLost:
		if known.lost || known.cached < 0 || e.Tokens > known.cached {
			return out, false
		}
	case FirstLoss:
		if known.lost {
			return out, false
		}
	}
	known.lost = true
	l.at.Put(e.Request, known)
	return out, true
}

// engineID is the ID that a request has inside vLLM.
func engineID(id string, k *openaiserver.Kind) string {
	tail := strconv.FormatUint(1<<32|uint64(rand.Uint32()), 16)[1:]
	if k.Chat {
		return k.Prefix + id + "-" + tail
	}
	return k.Prefix + id + "-0-" + tail
}
