package framework

import (
	"slices"
	"strings"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/internal/base/lru"
	"github.com/ragpilot/ragpilot/internal/prompt/markup"
)

// maxRewrites bounds the texts that Calls remembers, the least recently used go first; a turn with its documents is one
// and its front another, of the same bytes, and both again for the conversation's name. A turn has some 10 KB: 40 MB when full. One that
// is forgotten is sent in full again: slower, not wrong.
const maxRewrites = 4 * 4096

// restate decides about a user's text that no plan is known for, as after a restart: its blocks stay in the order in which they stand,
// and references take the place of those that users' texts in front show.
func (m *Calls) restate(t *transcript, message int, p *place) {
	if p.known || p.sent != p.text {
		return
	}
	found := slices.Collect(markup.Regions(p.text))
	if len(found) == 0 {
		return
	}
	if p.sent = m.restated(t, message, p.text, found); p.sent != p.text {
		t.replace(message, p.index, p.sent)
	}
	m.sent.put(p, p.key, p.text, p.sent, rewrite{})
}

func (m *Calls) restated(t *transcript, message int, value string, found []markup.Region) string {
	m.goOn(t, message)
	req := contextpilot.Request{Blocks: make([]contextpilot.Block, len(found)), Behind: t.earlier.end, Prior: t.earlier.of(found)}
	if len(req.Prior) == 0 {
		return value
	}
	s := span{before: value[:found[0].Start], after: value[found[len(found)-1].End:], gaps: []string{}}
	for i, r := range found {
		if i > 0 && !between(s.before, value[found[i-1].End:r.Start]) {
			return value
		}
		req.Blocks[i] = contextpilot.Block{ID: r.Label, Text: r.Text}
		s.whole = append(s.whole, value[r.Start:r.End])
		if strings.HasPrefix(r.Label, "~") { // made from the text
			req.Blocks[i].ID = ""
		}
		if i > 0 {
			s.gaps = append(s.gaps, value[found[i-1].End:r.Start])
		}
	}
	plan := m.pilot.Preview(req) // a label that was made from an ID is none of its blocks': the names are those that stand there
	refs := 0
	for _, it := range plan.Items {
		if it.Ref == nil {
			continue
		}
		refs++
		other := func(r markup.Region) bool { return r.Label == it.Ref.Label && r.Text != found[it.Index].Text }
		if slices.ContainsFunc(found, other) {
			return value
		}
	}
	if refs == 0 || len(plan.LeftOut) > 0 || plan.Fault != nil {
		return value
	}
	return s.rewrite(&plan, true)
}

// earlier is what the texts of the first messages show, of which restate asks.
type earlier struct {
	messages int
	end      contextpilot.Position
	named    map[string]naming // by label
	shown    map[string]shown  // by text
}

// naming is what a label stands for: one text, or several.
type naming struct {
	text    string
	several bool
}

// shown says how users' texts show a text.
type shown struct {
	last   string          // the label of the last one
	labels map[string]bool // those before it, nil: none
}

// goOn takes what t.earlier knows on to the messages in front of one.
func (m *Calls) goOn(t *transcript, message int) {
	f := &t.earlier
	if f.named == nil {
		f.named, f.shown = map[string]naming{}, map[string]shown{}
	}
	for ; f.messages < message; f.messages++ {
		msg := &t.messages[f.messages]
		for j := range msg.Texts {
			role, text := msg.role(j), msg.Texts[j].Value
			if role == conversation.System {
				continue
			}
			if role == conversation.User {
				f.end = m.pilot.Restore(f.end, text)
			}
			for r := range markup.Regions(text) {
				f.show(&r, role == conversation.User)
			}
		}
	}
}

// show notes a block.
func (f *earlier) show(r *markup.Region, user bool) {
	if n, ok := f.named[r.Label]; !ok {
		f.named[r.Label] = naming{text: r.Text}
	} else if n.text != r.Text {
		n.several = true
		f.named[r.Label] = n
	}
	if !user {
		return
	}
	s, ok := f.shown[r.Text]
	if ok && s.last != r.Label {
		if s.labels == nil {
			s.labels = map[string]bool{}
		}
		s.labels[s.last] = true
	}
	s.last = r.Label
	f.shown[r.Text] = s
}

// of returns what of the messages in front matters for blocks: those that have their texts, and for labels of several texts some that
// say so. Each is looked at in a time that depends on the blocks alone.
func (f *earlier) of(found []markup.Region) (prior []string) {
	for i := range found {
		text := found[i].Text
		s, ok := f.shown[text]
		if !ok {
			continue
		}
		labels := []string{s.last}
		if own := found[i].Label; s.labels[own] && own != s.last {
			labels = append(labels, own)
		}
		for _, label := range labels {
			prior = append(prior, markup.Render(label, text, false))
			if f.named[label].several {
				prior = append(prior, markup.Render(label, "", false), markup.Render(label, "-", false))
			}
		}
	}
	return prior
}

// rewriteKey identifies a text by itself and all that the caller put in front of it. So a text is only ever replaced behind the very
// messages that it was replaced behind before, and what it refers to is there. What a conversation has sent itself is found
// under its name first: another one with the same beginning may have had it in another order, or with another hint.
type rewriteKey = xxh3.Uint128

// rewrite is what was sent for a text.
type rewrite struct {
	text string
	same bool                  // it was sent as it was
	end  contextpilot.Position // behind the plan, and its answer if counted
	// counted says that the answer's tokens are known.
	counted bool
}

// of returns what was sent for the text.
func (r *rewrite) of(text string) string {
	if r.same {
		return text
	}
	return r.text
}

// rewrites remembers what was sent for the caller's texts, and for their fronts up to a plan's last block: a text may grow at its
// end, as an agent's does that notes in it what its tools say.
type rewrites struct {
	seed uint64 // of keys: two texts of one key cannot be made without it

	mu   sync.Mutex
	text *lru.Cache[rewriteKey, rewrite] // guarded by mu
}

func newRewrites(seed uint64) *rewrites {
	return &rewrites{seed: seed, text: lru.New[rewriteKey, rewrite](maxRewrites)}
}

// again returns what is to be sent for a text that had a plan before, which is then known, or whose front had.
func (r *rewrites) again(p *place) (whole rewrite, sent string, known bool) {
	whole, ok := r.get(p, p.key)
	if ok {
		return whole, whole.of(p.text), true
	}
	front, n := r.beginning(p, len(p.text))
	// Documents that follow at once are other documents of one prompt.
	if rest := p.text[n:]; n > 0 && !strings.HasPrefix(strings.TrimLeft(rest, " \n\t"), "<doc ") {
		return whole, front.of(p.text[:n]) + rest, false
	}
	return whole, p.text, false
}

// beginning returns what was sent for the longest part of text[:limit] that a plan's last block ends and that was sent before; end is 0 if
// none was.
func (r *rewrites) beginning(p *place, limit int) (sent rewrite, end int) {
	if !strings.Contains(p.text[:limit], "</doc") {
		return sent, 0
	}
	h := r.beginningHash(p)
	for at := 0; ; {
		i := strings.Index(p.text[at:limit], "</doc")
		if i < 0 {
			return sent, end
		}
		n := strings.IndexByte(p.text[at+i:limit], '>')
		if n < 0 {
			return sent, end
		}
		_, _ = h.WriteString(p.text[at : at+i+n+1])
		at += i + n + 1
		if was, ok := r.get(p, h.Sum128()); ok {
			sent, end = was, at
		}
	}
}

// remember notes what was sent for a text, so that later calls repeat it, and the position behind its plan and an answer of so many
// tokens; 0: not known.
func (r *rewrites) remember(p *place, end contextpilot.Position, answer int) {
	was := rewrite{end: end.Answered(answer), counted: answer > 0}
	r.put(p, p.key, p.text, p.sent, was)
	if end := len(p.text) - p.behind; p.reusable && end > 0 {
		h := r.beginningHash(p)
		_, _ = h.WriteString(p.text[:end])
		r.put(p, h.Sum128(), p.text[:end], p.sent[:len(p.sent)-p.behind], was)
	}
}

// keep notes that a text with blocks is sent as it is: what looks like one may be an instruction.
func (r *rewrites) keep(p *place) {
	if p.known || p.sent != p.text || !markup.In(p.text) {
		return
	}
	r.put(p, p.key, p.text, p.sent, rewrite{})
}

// get returns what was sent under a key, by the conversation itself if that is known.
func (r *rewrites) get(p *place, key rewriteKey) (was rewrite, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if own := p.own(key); own != key {
		if was, ok = r.text.Get(own); ok {
			return was, true
		}
	}
	return r.text.Get(key)
}

// own returns the key for the conversation's own name.
func (p *place) own(key rewriteKey) rewriteKey {
	return rewriteKey{Hi: key.Hi ^ p.by.Hi, Lo: key.Lo ^ p.by.Lo}
}

func (r *rewrites) put(p *place, key rewriteKey, text, sent string, was rewrite) {
	was.same = sent == text
	if !was.same {
		was.text = sent
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text.Put(key, was)
	if own := p.own(key); own != key {
		r.text.Put(own, was)
	}
}

// beginningHash returns a hash of all in front of the text, for its own front. No key of a whole text begins so.
func (r *rewrites) beginningHash(p *place) *xxh3.Hasher {
	h := xxh3.NewSeed(r.seed)
	before := p.before.Bytes()
	_, _ = h.WriteString("front:")
	_, _ = h.Write(before[:])
	return h
}
