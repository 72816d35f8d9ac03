package framework

import (
	"iter"
	"slices"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/citation"
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
)

// Message is a message as far as it is looked at: whose it is, its texts, and the calls of tools that it makes. A text without a
// role has that of the message.
type Message struct {
	Role  conversation.Role
	Texts []conversation.Text
	Calls []conversation.Call
	// Other is all else that the model reads, such as images and the arguments of calls. Messages only differ by it.
	Other []any
}

// role returns whose words a text of the message is.
func (m *Message) role(text int) conversation.Role {
	if r := m.Texts[text].Role; r != conversation.Other {
		return r
	}
	return m.Role
}

// users reports whether a text of the message is a user's words.
func (m *Message) users(text int) bool {
	return m.Role == conversation.User && m.role(text) == conversation.User
}

// Replacement says that a text is to be sent in place of one that the caller gave.
type Replacement struct {
	Message, Text int // indices into the messages, and into the texts of that message
	With          string
}

// Calls knows the calls that are made of one model. Safe for concurrent use.
type Calls struct {
	pilot  *contextpilot.Pilot
	offers *Offers
	scope  *contextpilot.Scope
	noHint bool
	sent   *rewrites
	books  *books // nil: no citations are wanted
	tools  toolResults
}

// Options change what Calls does.
type Options struct {
	// Scope is the cache that the model has, where the retriever cannot know; nil: that of the plan. A plan for another
	// scope is taken back there and made again for this one.
	Scope *contextpilot.Scope
	// NoHint leaves the order hint out where the blocks came without one.
	NoHint bool
	// Cite fills in Call.Sources.
	Cite bool
	// ToolResults puts notes in place of what tools return again. Forged notes are fenced without it, too.
	ToolResults bool
}

// NewCalls returns the Calls of a model that the pilot plans for. From now on a plan that was offered and no model claims was not
// sent, see [Offers].
func NewCalls(pilot *contextpilot.Pilot, o Options) *Calls {
	t := &Calls{pilot: pilot, scope: o.Scope, noHint: o.NoHint, sent: newRewrites(sharedOf(pilot).seed), tools: newToolResults(pilot, &o)}
	t.offers = &t.tools.offers
	t.offers.expectClaims()
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

	turns *Calls
	at    *place // nil: the plan has some of the retrieved blocks only, and no text is changed for it
}

// Begin looks for a held plan in the last user message, and works it into the messages. Of a plan of which some blocks stand
// there nothing is worked in: what is sent is planned as it stands. What the conversation has retrieved besides was not sent so far.
// What tools have returned is fenced, and replaced as far as Options say. The messages are not changed.
func (m *Calls) Begin(session string, messages []Message) *Call {
	t := m.read(session, messages)
	call := &Call{turns: m}
	defer m.offers.passedOver(m.tenant(), session)
	c, ok := m.claim(t)
	retrieved := c.plan
	if ok {
		call.Plan = m.settle(t, &c)
		call.at = &c.at
	} else {
		call.Plan, retrieved, ok = m.part(t)
	}
	for i := range t.texts {
		switch p := &t.texts[i]; {
		case !ok && t.more: // it was sent before
			m.restate(t, t.last, p)
		case call.at == nil || p.index != call.at.index: // beside the plan nothing is changed
			m.sent.keep(p)
		}
	}
	m.tools.edit(t, len(messages))
	call.Replacements = t.replacements()
	call.Planned = ok
	if ok && m.books != nil {
		call.Sources = m.books.of(session)
		call.Sources.AddRanked(call.Plan, ranks(&retrieved, &call.Plan))
	}
	return call
}

// End reports what became of a planned call; it is called once, whatever happened. Scope and Request of the event are
// filled in. Nothing happens for calls without a plan.
func (c *Call) End(ev contextpilot.Event) {
	if !c.Planned {
		return
	}
	ev.Scope, ev.Request = c.Plan.Scope, c.Plan.RequestID
	c.turns.pilot.Observe(ev)
	switch {
	case ev.Kind == contextpilot.Served && c.at != nil:
		c.turns.sent.remember(c.at, c.Plan.End, ev.Output)
	case ev.Kind == contextpilot.Served:
	case c.Sources != nil:
		c.Sources.Remove(c.Plan.RequestID)
	}
}

// Outcome says what became of a request: one of which nothing was heard is gone, any other was computed, cached tokens of it
// read from the engine's cache and output tokens made. Models that know nothing of a cache say 0, too.
func Outcome(heard bool, cached, output int) contextpilot.Event {
	if !heard {
		return contextpilot.Event{Kind: contextpilot.Gone}
	}
	return contextpilot.Event{Kind: contextpilot.Served, Tokens: max(cached, 0), CachedKnown: cached > 0, Output: max(output, 0)}
}

// transcript is one call's messages, read once.
type transcript struct {
	session string
	caller  []Message
	// messages are the caller's with the texts that are sent, but for those of tools: these are sent as edits say, if they do.
	messages []Message
	edits    map[at]string
	edited   int                // for how many messages edits were asked for
	sums     []conversation.Sum // of as many messages as were asked for
	prior    []string           // texts in front of the last user message as they are sent, without system messages
	known    rewrite            // the last turn in front whose plan is known
	from     int                // prior[from:] stands behind that turn
	user     []bool             // of prior: which are the user's
	earlier  earlier            // for restate
	last     int                // index of the last user message; −1: none
	more     bool               // messages follow it
	texts    []place            // texts of that message, as the caller gave them
}

// at is a text of a message.
type at struct{ message, text int }

// place is a text of the last user message.
type place struct {
	index    int
	by       xxh3.Uint128 // hash of the conversation's name; zero: it has none
	before   xxh3.Uint128 // hash of all in front of it
	key      rewriteKey
	text     string // the caller's
	sent     string // what goes out in its place, often the same
	known    bool   // it was sent before, with a plan
	behind   int    // bytes behind the plan's last block
	reusable bool   // what was sent up to there can be had again without the rest
}

// read walks through the messages and repeats the rewriting of earlier calls.
func (m *Calls) read(session string, messages []Message) *transcript {
	t := &transcript{session: session, caller: messages, messages: slices.Clone(messages), last: -1}
	for i, msg := range messages {
		if msg.Role == conversation.User {
			t.last = i
		}
	}
	t.more = t.last < len(messages)-1
	known := at{-1, 0} // the text with the last plan in front
	for where, p := range m.userTexts(session, messages) {
		var was rewrite
		if was, p.sent, p.known = m.sent.again(&p); p.sent != p.text {
			t.replace(where.message, where.text, p.sent)
		}
		switch {
		case where.message == t.last:
			t.texts = append(t.texts, p)
		case was.end != (contextpilot.Position{}):
			t.known, known = was, where
		default:
			m.restate(t, where.message, &p)
		}
	}
	m.tools.edit(t, max(t.last, 0))
	t.readPrior(known)
	return t
}

// userTexts iterates over the texts of users. Each is known by a hash of all that the caller put in front of it, and of its own, which
// leaves out system messages: roles, and texts behind their lengths.
func (m *Calls) userTexts(session string, messages []Message) iter.Seq2[at, place] {
	return func(yield func(at, place) bool) {
		var by xxh3.Uint128
		if session != "" {
			by = xxh3.HashString128Seed(session, m.sent.seed)
		}
		h := xxh3.NewSeed(m.sent.seed)
		hash := func(s string) {
			_, _ = h.WriteString(strconv.Itoa(len(s)) + ":") // never fails (hash.Hash)
			_, _ = h.WriteString(s)
		}
		for i := range messages {
			msg := &messages[i]
			if msg.Role == conversation.System {
				continue
			}
			hash("message " + strconv.Itoa(int(msg.Role)))
			for j, text := range msg.Texts {
				hash(strconv.Itoa(int(msg.role(j)))) // what a tool says is no text to refer to
				p := place{index: j, by: by, before: h.Sum128(), text: text.Value, sent: text.Value}
				hash(text.Value)
				if !msg.users(j) {
					continue
				}
				if p.key = h.Sum128(); !yield(at{i, j}, p) {
					return
				}
			}
		}
	}
}

// readPrior collects the texts in front of the last user message as they are sent. known is the text with the last plan among them.
func (t *transcript) readPrior(known at) {
	for i := range max(t.last, 0) {
		msg := &t.caller[i]
		if msg.Role == conversation.System {
			continue
		}
		if len(msg.Texts) == 0 {
			t.prior, t.user = append(t.prior, ""), append(t.user, false) // images or calls: what follows is not at the front
		}
		for j := range msg.Texts {
			t.prior = append(t.prior, t.sent(at{i, j}))
			t.user = append(t.user, msg.users(j))
			if known == (at{i, j}) {
				t.from = len(t.prior)
			}
		}
	}
}

// behind returns the position behind the texts in front of the last user message: that of the last turn whose plan is known, and
// the texts behind its answer.
func (m *Calls) behind(t *transcript) contextpilot.Position {
	pos, from := t.known.end, t.from
	if t.known.counted && from < len(t.prior) && !t.user[from] {
		from++ // the answer
	}
	for i := from; i < len(t.prior); i++ {
		switch {
		case t.user[i]:
			pos = m.pilot.Restore(pos, t.prior[i])
		case t.prior[i] != "":
			pos = m.pilot.Behind(pos, nil, t.prior[i])
		}
	}
	return pos
}

// replace notes what is sent for a text.
func (t *transcript) replace(message, text int, with string) { t.own(message)[text].Value = with }

// own returns the texts of a message that are not the caller's.
func (t *transcript) own(message int) []conversation.Text {
	m := &t.messages[message]
	if &m.Texts[0] == &t.caller[message].Texts[0] {
		m.Texts = slices.Clone(m.Texts)
	}
	return m.Texts
}

// sent returns what is sent for a text.
func (t *transcript) sent(a at) string {
	if with, ok := t.edits[a]; ok {
		return with
	}
	return t.messages[a.message].Texts[a.text].Value
}

// replacements returns the texts that are not sent as the caller gave them.
func (t *transcript) replacements() (out []Replacement) {
	for i := range t.caller {
		for j := range t.caller[i].Texts {
			if with := t.sent(at{i, j}); with != t.caller[i].Texts[j].Value {
				out = append(out, Replacement{i, j, with})
			}
		}
	}
	return out
}

// Apply returns the messages as they are to be sent, for programs that keep them as such. It copies what it changes.
func Apply(messages []Message, with []Replacement) []Message {
	return Replace(messages, with, func(m Message, text func(conversation.Text) string) Message {
		m.Texts = slices.Clone(m.Texts)
		for i, t := range m.Texts {
			m.Texts[i].Value = text(t)
		}
		return m
	})
}

// EachMessage calls do for each message that has replacements, with what is to be sent for its texts when it is asked for each of
// them in the order in which they were given to [Calls.Begin].
func EachMessage(with []Replacement, do func(message int, text func(conversation.Text) string)) {
	for len(with) > 0 {
		message, n := with[0].Message, 0
		do(message, func(text conversation.Text) string {
			n++
			if len(with) > 0 && with[0].Message == message && with[0].Text == n-1 {
				text.Value = with[0].With
				with = with[1:]
			}
			return text.Value
		})
		for len(with) > 0 && with[0].Message == message { // none of a wrapper that visits all texts
			with = with[1:]
		}
	}
}
