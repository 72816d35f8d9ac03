package engines

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// probeText stands in a prompt where its blocks will.
const probeText = "ragpilot:6f1c1f0e-blocks-stand-here"

// probePlan returns a plan of one block that no prompt has. It is made by a pilot of its own.
func probePlan() (contextpilot.Plan, error) {
	p, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		return contextpilot.Plan{}, err
	}
	return p.Plan(contextpilot.Request{Blocks: []contextpilot.Block{{ID: "ragpilot-probe", Text: probeText}}}), nil
}

// head is what stands in front of a request's blocks.
type head struct {
	req   Request // its last message ends where the blocks begin
	first int     // messages in front of the history; all, if there is none
	fixed int     // of these, those that are the same in each turn: the system messages
}

// head asks build for a prompt and cuts it where the blocks begin. If build shows no blocks, all of it is the head.
func (w *Warmer) head(req *contextpilot.Request, build func(*contextpilot.Plan) Request) head {
	plan := w.probe
	plan.Scope, plan.Session = req.Scope, req.Session
	h := head{req: build(&plan)}
	if i, at, _ := find(&h.req, &plan, 0); i >= 0 {
		h.req = upTo(h.req, i, at)
	}
	h.first = len(h.req.Messages)
	if len(req.Prior) > 0 && req.Prior[0] != "" {
		i := slices.IndexFunc(h.req.Messages, func(m Message) bool { return strings.Contains(m.Content, req.Prior[0]) })
		if i >= 0 {
			h.first = i
		}
	}
	h.fixed = slices.IndexFunc(h.req.Messages[:h.first], func(m Message) bool { return m.Role != System })
	if h.fixed <= 0 {
		h.fixed = h.first // there are no others, or no system messages
	}
	return h
}

// find returns in which message an item of a plan stands, and where; i < 0: in none. Where it is not as
// [contextpilot.Plan] renders it, it is the block's text.
func find(req *Request, plan *contextpilot.Plan, item int) (i, start, end int) {
	for _, text := range []string{strings.TrimSpace(plan.RenderItem(item)), plan.Block(plan.Items[item].Index).Text} {
		for i, m := range req.Messages {
			if at := strings.Index(m.Content, text); at >= 0 && text != "" {
				return i, at, at + len(text)
			}
		}
	}
	return -1, 0, 0
}

// upTo returns the request up to a place in message i.
func upTo(req Request, i, at int) Request {
	last := req.Messages[i]
	req.Messages = append(slices.Clone(req.Messages[:i]), Message{last.Role, last.Content[:at]})
	return req
}

// tokens is an estimate of the length of the head's first n messages.
func (h *head) tokens(n int) (sum int) {
	for _, m := range h.req.Messages[:n] {
		sum += contextpilot.Estimate{}.Count(m.Content)
	}
	return sum
}

// headMatch is what the pilot knows of a head, in tokens.
type headMatch struct {
	prompt   int  // the whole
	first    int  // what stands in front of the history
	resident int  // if anything of the scope is
	live     bool // something is
}

// match asks the pilot.
func (h *head) match(p *contextpilot.Pilot, req contextpilot.Request) headMatch {
	if h.tokens(len(h.req.Messages)) == 0 {
		return headMatch{}
	}
	req.Blocks, req.Query = nil, ""
	if req.HeadTokens <= 0 {
		req.HeadTokens = h.tokens(h.first)
	}
	live := 0
	p.View(req.Scope, func(v contextpilot.View) { live, _ = v.Size() })
	m := p.Match(req)
	return headMatch{prompt: m.Prompt, first: req.HeadTokens, resident: m.Tokens, live: live > 0}
}

// headKey names a head; equal keys are equal prompts in the same cache.
type headKey struct {
	scope contextpilot.Scope
	hash  uint64
}

// key names the beginning of a request that has its first n messages.
func (w *Warmer) key(scope contextpilot.Scope, req *Request, n int) headKey {
	var h maphash.Hash
	h.SetSeed(w.seed)
	add := func(s string) {
		maphash.WriteComparable(&h, len(s)) // so that no two lists of texts look alike
		_, _ = h.WriteString(s)
	}
	add(req.Model)
	for _, m := range req.Messages[:n] {
		add(string(m.Role))
		add(m.Content)
	}
	for _, name := range slices.Sorted(maps.Keys(req.Extra)) { // tools, a cache salt, an adapter
		add(name)
		add(string(req.Extra[name]))
	}
	return headKey{scope, h.Sum64()}
}

// filler is said by the user where a head has nothing of the user's: many chat templates want something.
const filler = "."

// asWarmup makes a request ask for one token. Where build chooses another name for the limit, it keeps it: not every server
// takes every name.
func asWarmup(req Request, id string) Request {
	req.ID, req.MaxTokens = id, 1
	req.Extra = maps.Clone(req.Extra)
	for _, name := range []string{"max_tokens", "max_completion_tokens", "n_predict"} {
		if len(req.Extra[name]) > 0 {
			req.Extra[name] = json.RawMessage("1")
		}
	}
	for _, name := range []string{"min_tokens", "n", "n_cmpl", "best_of"} {
		delete(req.Extra, name)
	}
	return req
}

// asChat makes the beginning of a prompt a chat that templates accept.
func asChat(req Request) Request {
	last := len(req.Messages) - 1
	switch m := req.Messages[last]; {
	case m.Role != User:
		req.Messages = append(slices.Clip(req.Messages), Message{User, filler})
	case m.Content == "":
		req.Messages = slices.Clone(req.Messages)
		req.Messages[last].Content = filler
	}
	return req
}
