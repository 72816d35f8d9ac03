package adapter

import (
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/citation"
	"github.com/ragpilot/ragpilot/contextpilot"
)

// Role is whose message it is.
type Role uint8

// Roles.
const (
	Assistant Role = iota
	System
	User
	Tool
)

// Message is a message as far as a plan is concerned: whose it is, and its texts.
type Message struct {
	Role  Role
	Texts []string
}

// Replacement says that a text is to be sent in place of one that the caller gave.
type Replacement struct {
	Message, Text int // indices into the messages, and into the texts of that message
	With          string
}

// Turns knows the calls that are made of one model. Safe for concurrent use.
type Turns struct {
	pilot  *contextpilot.Pilot
	scope  *contextpilot.Scope
	noHint bool
	sent   *rewrites
	books  *books // nil: nobody asks for citations
}

// Options change what Turns does.
type Options struct {
	// Scope is the cache that the model has, where the retriever cannot know; nil: that of the plan. A plan for another
	// scope is taken back there and made again for this one.
	Scope *contextpilot.Scope
	// NoHint leaves the order hint out where the blocks came without one.
	NoHint bool
	// Cite fills in Call.Sources.
	Cite bool
}

// NewTurns returns Turns of a model that the pilot plans for. From now on a plan that the pilot holds and no model claims
// was not sent, see [contextpilot.Pilot.ExpectClaims].
func NewTurns(pilot *contextpilot.Pilot, o Options) *Turns {
	pilot.ExpectClaims()
	t := &Turns{pilot: pilot, scope: o.Scope, noHint: o.NoHint, sent: newRewrites()}
	if o.Cite {
		t.books = newBooks()
	}
	return t
}

// Call is one call of a model.
type Call struct {
	// Replacements are the texts that the caller's are to be replaced by, a text at most once.
	Replacements []Replacement
	// Plan is that whose rendering is sent; only meaningful if Planned.
	Plan    contextpilot.Plan
	Planned bool
	// Sources knows what the labels that the model sees in this call stand for; nil without Options.Cite or a plan.
	Sources *citation.Sources

	turns *Turns
	at    *place // nil: the plan has some of the retrieved blocks only, and no text is changed for it
}

// Begin looks for a held plan in the last user message, and works it into the messages. Of a plan of which some blocks stand
// there nothing is worked in: what is sent is planned as it stands. What the conversation has retrieved besides was not sent so far.
func (m *Turns) Begin(session string, messages []Message) *Call {
	t := m.read(session, messages)
	call := &Call{turns: m, Replacements: t.replacements}
	defer m.pilot.PassedOver(session)
	c, ok := m.claim(t)
	retrieved := c.plan
	if ok {
		call.Plan = m.settle(t, &c)
		call.Replacements, call.at = t.replacements, &c.at
	} else if call.Plan, retrieved, ok = m.part(t); !ok {
		return call
	}
	call.Planned = true
	if m.books != nil {
		call.Sources = m.books.of(session)
		call.Sources.AddRanked(call.Plan, ranks(&retrieved, &call.Plan))
	}
	return call
}

// End tells what became of a planned call; it is called once, whatever happened. Scope and Request of the event are
// filled in. Nothing happens for calls without a plan.
func (c *Call) End(ev contextpilot.Event) {
	if !c.Planned {
		return
	}
	ev.Scope, ev.Request = c.Plan.Scope, c.Plan.RequestID
	c.turns.pilot.Observe(ev)
	switch {
	case ev.Kind == contextpilot.Served && c.at != nil:
		c.turns.sent.remember(c.at)
	case ev.Kind == contextpilot.Served:
	case c.Sources != nil:
		c.Sources.Remove(c.Plan.RequestID)
	}
}

// turn is one call's messages, read once.
type turn struct {
	session      string
	replacements []Replacement
	prior        []string // texts in front of the last user message as they are sent, without system messages
	last         int      // index of the last user message; −1: none
	more         bool     // messages follow it
	texts        []place  // texts of that message, as the caller gave them
}

// place is a text of the last user message.
type place struct {
	index  int
	before xxh3.Uint128 // hash of all in front of it
	key    rewriteKey
	text   string // the caller's
	sent   string // what goes out in its place, often the same
	known  bool   // it was sent before, with a plan
	behind int    // bytes behind the plan's last block
	front  bool   // what was sent up to there can be had again without the rest
}

// read walks through the messages and repeats the rewriting of earlier calls.
func (m *Turns) read(session string, messages []Message) *turn {
	t := &turn{session: session, last: -1}
	for i, msg := range messages {
		if msg.Role == User {
			t.last = i
		}
	}
	t.more = t.last < len(messages)-1
	h := xxh3.New()
	hash := func(s string) { _, _ = h.WriteString(strconv.Itoa(len(s)) + ":" + s) } // never fails (hash.Hash)
	hash(session)
	for i, msg := range messages {
		if msg.Role == System {
			continue
		}
		hash(strconv.Itoa(int(msg.Role)))
		if i < t.last && len(msg.Texts) == 0 {
			t.prior = append(t.prior, "") // images or calls: what follows is not at the front
		}
		for j, text := range msg.Texts {
			p := place{index: j, before: h.Sum128(), text: text, sent: text}
			hash(text)
			p.key = rewriteKey(h.Sum128())
			if msg.Role == User {
				if p.sent, p.known = m.sent.again(&p); p.sent != text {
					t.replace(i, j, p.sent)
				}
			}
			switch {
			case i < t.last:
				t.prior = append(t.prior, p.sent)
			case i == t.last:
				t.texts = append(t.texts, p)
			}
		}
	}
	return t
}

// replace notes what is sent for a text, in place of what was noted for it before.
func (t *turn) replace(message, text int, with string) {
	for i, r := range t.replacements {
		if r.Message == message && r.Text == text {
			t.replacements[i].With = with
			return
		}
	}
	t.replacements = append(t.replacements, Replacement{message, text, with})
}
