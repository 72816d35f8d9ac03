package conversation

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/prompt/markup"
	"github.com/ragpilot/ragpilot/internal/prompt/orders"
	"github.com/ragpilot/ragpilot/internal/prompt/repeat"
)

// Forward is a request as it is to be forwarded.
type Forward struct {
	Edits   []Edit // in no order
	Plans   []Plan
	Scope   *contextpilot.Scope // whose index the beginning of the prompt is in; nil: none
	Changes []Change            // of messages that were not sent before
	Lines   Lines               // of all messages
	// Found counts the documents that were looked at, and Replaced the blocks of lines that were replaced, in messages that were not
	// sent before.
	Found, Replaced int

	engine *Engine
	dryRun bool
}

// Plan is a prompt that the pilot's index takes for sent from now on, until [Forward.Done] says otherwise.
type Plan struct {
	Scope    contextpilot.Scope
	ID       string
	Expected int // tokens in the engine's cache
	Tokens   int // of its documents, by the pilot's count
	// Where its documents stand: in a text of a message, whose value has Size bytes as it came, Before in front of them and After
	// behind them.
	Message, Text       int
	At                  uint64 // the text's
	Size, Before, After int
}

// request is a call of [Engine.Begin].
type request struct {
	ctx    context.Context
	e      *Engine
	c      Conversation
	source Source
	out    *Forward
	texts  map[[2]int]keptText // that were looked at, by message and text
	came   int                 // the bytes of the text as it came: fences make it longer
	parts  []string            // the texts of the message, those of tools, without what was replaced by a note
}

// seen is what the messages so far have shown.
type seen struct {
	multi      bool                // some result held several documents
	links      []*link             // with documents or calls
	table      *visible            // nil: not made yet
	tools      map[string][]called // tools' names by the calls' IDs, in the order of the messages
	rows       repeat.Memory       // blocks of lines
	systemOnly bool                // nothing but system messages so far
}

// call notes that a message makes a call.
func (s *seen) call(c Call, message int) {
	if s.tools == nil {
		s.tools = map[string][]called{}
	}
	s.tools[c.ID] = append(s.tools[c.ID], called{message, c.Tool})
}

// called says that a message called a tool.
type called struct {
	message int
	tool    string
}

// tool returns the tool that a call in front of a message was for, "" if there is none: IDs may be used again.
func (s *seen) tool(id string, message int) string {
	for _, c := range slices.Backward(s.tools[id]) {
		if c.message < message {
			return c.tool
		}
	}
	return ""
}

// Begin decides how a request is forwarded: its edits are the same as before for messages that were sent before. The error is the
// context's; then nothing more is planned or remembered.
func (e *Engine) Begin(ctx context.Context, c Conversation, m Source) (*Forward, error) {
	t := e.tenant(c.Tenant)
	by := t.session(c.Name, e.opt.Budget)
	x := &request{ctx: ctx, e: e, c: c, source: m, out: &Forward{engine: e, dryRun: c.Mode == DryRun}}
	chains := chainsOf(&x.c, m, c.Mode != Planned)
	if c.Mode == AsCame {
		t.memo.pass(chains, m, by)
		return x.out, nil
	}
	if err := x.plan(t.memo, chains, m, by); err != nil {
		x.out.Done(Outcome{Gone: true}) // nothing of it is sent
		return nil, err
	}
	return x.out, nil
}

// plan decides about the messages that are not remembered, and collects what is to be done with all.
func (x *request) plan(remembered *memo, chains []chain, m Source, by *session) error {
	last, known := remembered.longest(chains, by)
	if known < len(chains) {
		var err error
		if last, err = x.learn(remembered, last, known, chains, m, by); err != nil {
			return err
		}
	}
	remembered.sent(last, by, x.out.dryRun)
	for ; last != nil; last = last.before {
		i := last.messages - 1
		for _, e := range last.edits {
			x.out.Edits = append(x.out.Edits, Edit{Message: i, Text: e.text, At: e.at, With: e.with})
		}
		x.out.Lines.add(last.lines)
		if last.scope != nil {
			x.out.Scope = last.scope // in the end that of the first documents
		}
		if i >= known {
			x.out.Replaced += last.lines.Replaced
			continue
		}
		for _, l := range last.leads {
			x.again(l, i)
		}
	}
	return nil
}

// learn decides about the messages from known on, behind last, and returns the link of the last one.
func (x *request) learn(remembered *memo, last *link, known int, chains []chain, m Source, by *session) (*link, error) {
	s := recall(last)
	next := new(link)
	var msg Message // one for all: there may be many, and most say little
	for i := known; i < len(chains); i++ {
		msg = Message{Texts: msg.Texts[:0], Calls: msg.Calls[:0]}
		m.Load(i, &msg)
		next.chain, next.before, next.messages = chains[i], last, i+1
		if err := x.message(next, s, i, &msg); err != nil {
			return nil, err
		}
		s.systemOnly = s.systemOnly && msg.Role == System
		next.systemOnly, next.multi, next.rows = s.systemOnly, s.multi, next.rows.And(s.rows.Fresh())
		if i+1 < len(chains) && next.plain() {
			continue // the next one takes over its numbers of lines
		}
		last = remembered.add(next, by)
		next = new(link)
	}
	return last, nil
}

// recall collects what the messages up to l have shown.
func recall(l *link) *seen {
	out := &seen{systemOnly: l == nil || l.systemOnly}
	for ; l != nil; l = l.before {
		out.multi = out.multi || l.multi
		out.rows.Know(l.rows)
		if len(l.shown)+len(l.calls) > 0 {
			out.links = append(out.links, l)
		}
	}
	slices.Reverse(out.links) // the first one first
	for _, l := range out.links {
		for _, c := range l.calls {
			out.call(c, l.messages-1)
		}
	}
	return out
}

// visible returns the table of what may be referred to. It is made when it is first asked for: most requests go on with a few words.
func (s *seen) visible(recorded bool) *visible {
	if s.table != nil {
		return s.table
	}
	n := 0
	for _, l := range s.links {
		n += len(l.shown)
	}
	s.table = newVisible(n, recorded)
	for _, l := range s.links {
		for _, d := range l.shown {
			s.table.add(target{d.shown, l.messages - 1, d.role})
		}
	}
	return s.table
}

// ready makes the texts of message i ready to be looked at: with the tools' names, and with fences.
func (x *request) ready(s *seen, i int, m *Message) {
	for j := range m.Texts {
		tx := &m.Texts[j]
		tx.Tool = cmp.Or(s.tool(tx.Call, i), tx.Tool)
	}
	fence(m.Texts, x.c.Look.Form)
}

// message plans the texts of one message. An error is the context's.
func (x *request) message(next *link, s *seen, i int, m *Message) error {
	came := make([]string, len(m.Texts))
	for j := range m.Texts {
		came[j] = m.Texts[j].Value
	}
	x.ready(s, i, m)
	x.parts = x.parts[:0]
	for j := range m.Texts {
		tx, part := &m.Texts[j], ""
		if tx.Role == Tool && !tx.Opaque {
			part = tx.Value
		}
		x.parts = append(x.parts, part)
	}
	for j := range m.Texts {
		if err := x.ctx.Err(); err != nil {
			return err
		}
		out := m.Texts[j].Value
		if x.came = len(came[j]); !m.Texts[j].Opaque {
			out = x.text(next, s, i, j, &m.Texts[j])
		}
		if out != came[j] {
			encode := x.e.opt.Encode
			if m.Texts[j].Opaque {
				encode = strings.Clone
			}
			next.edits = append(next.edits, edit{text: j, at: m.Texts[j].At, with: encode(out)})
		}
	}
	for _, c := range m.Calls {
		c.ID, c.Tool = strings.Clone(c.ID), strings.Clone(c.Tool) // not all of the message
		next.calls = append(next.calls, c)
		s.call(c, i)
	}
	return x.ctx.Err()
}

// text returns what is sent for a text.
func (x *request) text(next *link, s *seen, i, j int, tx *Text) string {
	found, ok := x.documents(tx)
	defer x.names(next, s, i, tx, &found)
	if !ok {
		return x.result(next, s, i, j, tx)
	}
	var drop map[int]bool
	out := tx.Value
	switch {
	case tx.Fixed, !x.c.Recorded && tx.Role == System && hasEcho(tx.Value): // a planner has laid it out
		x.out.Found += len(found.docs)
	case tx.Role == System && s.systemOnly:
		x.out.Found += len(found.docs)
		out = x.system(next, i, j, tx.At, &found, placeOf(next.chain, j))
	case tx.Role == Tool || tx.Role == User:
		x.out.Found += len(found.docs)
		out, drop = x.known(next, s, i, j, tx, &found, placeOf(next.chain, j))
	}
	shorter := out
	var cuts [][2]int
	switch {
	case !x.c.Recorded && tx.Role == System:
		x.rowsOf(next, s, i, tx, &found)
	case len(drop) == 0 || x.c.Recorded: // a note is no row that another could stand for
		shorter, cuts = x.rows(next, s, i, tx, out)
	case tx.Rows:
		s.rows.Pass(x.lined(i, tx, out), x.e.opt.Modulus)
	}
	if x.c.Recorded && tx.Role == System {
		return shorter
	}
	from := label(tx)
	for k := range found.docs {
		if drop[k] {
			continue
		}
		_, c := x.says(&found, k)
		d := shown{content: c, text: int32(j), doc: int32(k)}
		if !x.c.Recorded {
			d.name = found.name(k, from)
		}
		if !x.c.Recorded && found.cut(k, cuts) {
			d.doc = nameOnly // it does not stand there in full
		}
		x.show(next, s, i, tx, d)
	}
	return shorter
}

// names notes what in a text bears a name that a note may use, and is no target: our own markup where its documents are not looked at,
// and the result of a call.
func (x *request) names(next *link, s *seen, i int, tx *Text, found *found) {
	if x.c.Recorded {
		return
	}
	note := func(name, c content) {
		if known, ok := s.visible(x.c.Recorded).named[name]; !ok || known != c && known != (content{}) {
			x.show(next, s, i, tx, shown{content: c, name: name, doc: nameOnly})
		}
	}
	if tx.Role == Tool && tx.Call != "" && tx.Value != "" {
		note(callName(tx.Call), wholeOf(tx.Value))
	}
	if found.own != nil {
		return
	}
	blocks := 0
	for r := range markup.Regions(tx.Value) {
		note(xxh3.HashString128(bracketed(r.Label)), contentOf(r.Text))
		if blocks++; blocks == MaxDocuments {
			return
		}
	}
}

// show notes that a document stands in a message.
func (x *request) show(next *link, s *seen, message int, tx *Text, d shown) {
	next.shown = append(next.shown, shownAs{d, tx.Role})
	s.visible(x.c.Recorded).add(target{d, message, tx.Role})
}

// placeOf names one text of a message.
func placeOf(c chain, text int) orders.Key {
	var k orders.Key
	binary.LittleEndian.PutUint64(k[:8], c.Lo+uint64(text))
	binary.LittleEndian.PutUint64(k[8:], c.Hi)
	return k
}
