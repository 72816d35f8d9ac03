package memory

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// Bounds on what [Wrap] keeps of where memories stand, see [WithinHistory].
const (
	maxConversations = 1000
	minKept          = 64 // memories of one conversation, or keptPerK times k if that is more
	keptPerK         = 8
	maxKeptBytes     = 1 << 16 // of one conversation's sections
)

// layout is how memories stand within a history. It is not changed once it is stored, so that it is read without
// a lock.
type layout struct {
	length int      // of the history that they were made for, in bytes of a string or messages
	sum    [32]byte // of that history
	all    []section
}

// section is what was recalled at one turn.
type section struct {
	at    int // what of the history stands in front of it
	shown []placed
}

// placed is a memory in a section.
type placed struct {
	id    string // of the memory
	block string // [Memory.BlockID]: of its text and scope
	hash  string // [HashOf] its text, which other scopes may have too
	text  string // as it stands in the prompt
	line  bool   // not a block
}

// text returns the section as it stands in the prompt.
func (s *section) text(heading string) string {
	lines := make([]string, 0, len(s.shown)+1)
	if heading != "" {
		lines = append(lines, heading)
	}
	for i := range s.shown {
		lines = append(lines, s.shown[i].text)
	}
	return strings.Join(lines, "\n")
}

// texts returns the hashes of the texts that the sections show.
func (s *layout) texts() map[string]bool {
	texts := map[string]bool{}
	for i := range s.all {
		for _, p := range s.all[i].shown {
			texts[p.hash] = true
		}
	}
	return texts
}

func (s *layout) bytes() (n int) {
	for i := range s.all {
		for _, p := range s.all[i].shown {
			n += len(p.text)
		}
	}
	return n
}

// keeper remembers the sections of the conversations that were used last. It is safe for concurrent use.
type keeper struct {
	mu sync.Mutex
	of *lru.Cache[conversation, layout] // guarded by mu
}

// conversation is whose sections are kept.
type conversation struct {
	scope Scope
	name  string
}

func newKeeper() *keeper {
	return &keeper{of: lru.New[conversation, layout](maxConversations)}
}

func (k *keeper) get(c conversation) layout {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, _ := k.of.Get(c)
	return s
}

// put stores sections, or forgets the conversation if there is nothing to keep or too much.
func (k *keeper) put(c conversation, s layout) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(s.all) == 0 || s.bytes() > maxKeptBytes {
		k.of.Delete(c)
		return
	}
	k.of.Put(c, s)
}

func (k *keeper) forget(c conversation) { k.put(c, layout{}) }

// conversationOf names the conversation of the context.
func (w *wrapped) conversationOf(ctx context.Context) (conversation, error) {
	s, err := w.scopeOf(ctx)
	if err != nil {
		return conversation{}, fmt.Errorf("memory: recall: %w", err)
	}
	// The strings may be parts of longer ones, which would be kept with them.
	s = Scope{User: strings.Clone(s.User), Agent: strings.Clone(s.Agent), Run: strings.Clone(s.Run)}
	return conversation{s, strings.Clone(framework.ConversationFrom(ctx))}, nil
}

// within returns a history with the memories within it. With an error it is the history with those that are known to be there
// still: none if that cannot be found out.
func (w *wrapped) within(ctx context.Context, inputs map[string]any, history past) (any, error) {
	c, err := w.conversationOf(ctx)
	if err != nil {
		return history.value, err
	}
	before := w.kept.get(c)
	now := before.continued(history)
	if now.all, err = w.still(ctx, c.scope, now.all); err != nil {
		return history.value, err
	}
	q, err := w.look(ctx, inputs, history.value)
	if err != nil {
		return w.put(history, "", now.all), err
	}
	if fresh := w.fresh(&now, q.hits); len(fresh) > 0 {
		req := contextpilot.Request{}
		if history.length > 0 { // no other prompt begins so: there is nothing to order them by
			req.Fixed, req.Prior = true, history.texts()
		}
		plan := w.plan(ctx, q.query, fresh, req)
		if s := w.sectionOf(&plan, fresh, history.length); len(s.shown) > 0 {
			now.all = append(now.all, s)
			// The model wrapper looks for the blocks of a plan, all of them, in the last message.
			if !history.chat && !slices.ContainsFunc(s.shown, func(p placed) bool { return p.line }) {
				w.hold(plan)
			}
		}
	}
	w.kept.put(c, now)
	return w.put(history, q.stable, now.all), nil
}

// continued returns the sections to put back, none if the history is not that of the turn before with more behind it. If it has not
// grown the last section is not put back either: it is made for the input of now.
func (s *layout) continued(history past) layout {
	now := layout{length: history.length, sum: history.sum(history.length)}
	if history.length < s.length || history.sum(s.length) != s.sum || !history.parted(s.length) {
		return now
	}
	now.all = slices.Clone(s.all)
	if last := len(now.all) - 1; last >= 0 && now.all[last].at == history.length {
		now.all = now.all[:last]
	}
	return now
}

// still returns the sections without the memories that are not found any more as they stand there.
func (w *wrapped) still(ctx context.Context, scope Scope, all []section) ([]section, error) {
	var ids []string
	for i := range all {
		for _, p := range all[i].shown {
			ids = append(ids, p.id)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := w.getter.GetMany(ctx, ids, ListOptions{Filter: w.searched().Filter, Expired: w.search.Expired})
	if err != nil {
		return nil, err
	}
	blocks := make(map[string]string, len(found))
	for i := range found {
		if scope.Covers(found[i].Scope) {
			blocks[found[i].ID] = found[i].BlockID()
		}
	}
	kept := make([]section, 0, len(all)+1)
	for _, s := range all {
		s.shown = slices.DeleteFunc(slices.Clone(s.shown), func(p placed) bool { return blocks[p.id] != p.block })
		if len(s.shown) > 0 {
			kept = append(kept, s)
		}
	}
	return kept, nil
}

// fresh returns the hits that no section shows. If the sections would become too large with them, there are no sections any more,
// and all hits are fresh.
func (w *wrapped) fresh(now *layout, hits []Hit) []Hit {
	hits = w.fitting(hits)
	texts := now.texts()
	fresh := slices.DeleteFunc(slices.Clone(hits), func(h Hit) bool { return texts[HashOf(h.Memory.Text)] })
	n := len(texts) + len(fresh)
	tooMany := n > minKept && (n-1)/keptPerK >= w.k // 8 × k may be more than an int holds
	if len(texts) > 0 && len(fresh) > 0 && (tooMany || w.overBudget(now, fresh)) {
		now.all = nil
		return hits
	}
	return fresh
}

// fitting returns the hits that a prompt with no other memories shows: what WithBudget leaves out anyway is not fresh.
func (w *wrapped) fitting(hits []Hit) []Hit {
	if w.budget < 1 {
		return hits
	}
	count, tokens := w.pilot.Tokenizer().Count, 0
	return slices.DeleteFunc(slices.Clone(hits), func(h Hit) bool {
		n := count(h.Memory.Text)
		if tokens+n > w.budget {
			return true
		}
		tokens += n
		return false
	})
}

// overBudget reports whether the sections with more memories take more tokens than WithBudget allows.
func (w *wrapped) overBudget(now *layout, more []Hit) bool {
	if w.budget < 1 {
		return false
	}
	count, tokens := w.pilot.Tokenizer().Count, 0
	for i := range now.all {
		for _, p := range now.all[i].shown {
			tokens += count(p.text)
		}
	}
	for i := range more {
		tokens += count(more[i].Memory.Text)
	}
	return tokens > w.budget
}

// sectionOf returns what a plan of hits shows.
func (w *wrapped) sectionOf(plan *contextpilot.Plan, hits []Hit, at int) section {
	s := section{at: at, shown: make([]placed, len(plan.Items))}
	for i, it := range plan.Items {
		m := &hits[it.Index].Memory
		p := placed{id: m.ID, hash: HashOf(m.Text), block: plan.Block(it.Index).ID, text: strings.TrimSuffix(plan.RenderItem(i), "\n")}
		// A text that is fenced has the form of a note.
		if line, ok := asLine(m.Text); ok && !w.blocks && p.text == "<doc "+it.Label+">\n"+m.Text+"\n</doc>" {
			p.text, p.line = line, true
		}
		s.shown[i] = p
	}
	return s
}

// put puts sections into a history, and front in front of it.
func (w *wrapped) put(history past, front string, all []section) any {
	if front == "" && len(all) == 0 {
		return history.value
	}
	if history.chat {
		return w.putMessages(history.messages, front, all)
	}
	return w.putText(history.text, front, all)
}

func (w *wrapped) putMessages(history []llms.ChatMessage, front string, all []section) []llms.ChatMessage {
	messages := make([]llms.ChatMessage, 0, len(history)+len(all)+1)
	if front != "" {
		messages = append(messages, llms.HumanChatMessage{Content: front})
	}
	from := 0
	for i := range all {
		messages = append(messages, history[from:all[i].at]...)
		messages = append(messages, llms.HumanChatMessage{Content: all[i].text(w.heading)})
		from = all[i].at
	}
	return append(messages, history[from:]...)
}

// putText separates a section from what stands in front of it by an empty line, and from what stands behind it by what the history has
// there: a line feed in front of a turn. The first turn has none, and gets one, as prompts have one behind the history.
func (w *wrapped) putText(history, front string, all []section) string {
	var b strings.Builder
	b.WriteString(front)
	from := 0
	for i := range all {
		separate(&b, history[from:all[i].at], "\n")
		separate(&b, all[i].text(w.heading), "\n\n")
		from = all[i].at
	}
	separate(&b, history[from:], "\n")
	return b.String()
}

// separate writes a text behind what there is, with the separator between them unless the text begins with a line feed.
func separate(b *strings.Builder, text, separator string) {
	if b.Len() > 0 && text != "" && text[0] != '\n' {
		b.WriteString(separator)
	}
	b.WriteString(text)
}

// past is a history as inner gave it, in either form.
type past struct {
	value    any
	text     string
	messages []llms.ChatMessage
	chat     bool // messages
	length   int
	ends     []int // of each message in encoded
	encoded  []byte
}

// pastOf reads a history; ok: it has a form that sections can be put into.
func pastOf(value any) (p past, ok bool) {
	p.value = value
	switch h := value.(type) {
	case nil:
		return p, true
	case string:
		p.text, p.length = h, len(h)
		return p, true
	case []llms.ChatMessage:
		p.messages, p.chat, p.length = h, true, len(h)
		var b bytes.Buffer
		for _, m := range h {
			raw, err := json.Marshal(m)
			if err != nil {
				return p, false
			}
			_, _ = fmt.Fprintf(&b, "%T %q %q %d %s", m, m.GetType(), m.GetContent(), len(raw), raw) // never fails (bytes.Buffer)
			p.ends = append(p.ends, b.Len())
		}
		p.encoded = b.Bytes()
		return p, true
	}
	return p, false
}

// texts returns what the history says.
func (p *past) texts() []string {
	if !p.chat {
		return []string{p.text}
	}
	texts := make([]string, len(p.messages))
	for i, m := range p.messages {
		texts[i] = m.GetContent()
	}
	return texts
}

// sum returns a hash of the first n bytes or messages.
func (p *past) sum(n int) [32]byte {
	switch {
	case !p.chat:
		return sha256.Sum256([]byte(p.text[:n]))
	case n == 0:
		return sha256.Sum256([]byte("messages"))
	}
	return sha256.Sum256(p.encoded[:p.ends[n-1]])
}

// parted reports whether the history goes on with a new line behind n, so that a section there stands between two turns.
func (p *past) parted(n int) bool {
	return p.chat || n == 0 || n == p.length || p.text[n] == '\n'
}
