package history_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/contextpilot/history"
	"github.com/ragpilot/ragpilot/internal/prompt/markup"
)

// tight counts as an engine whose tokens are up to a quarter more than an estimate's: at the edge of the margin.
type tight struct{}

func (tight) Count(text string) int { return contextpilot.Estimate{}.Count(text) * 5 / 4 }

// sticky counts more for a whole than for its parts: what no tokenizer of use does, but none promises not to.
type sticky struct{}

func (sticky) Count(text string) int {
	n := strings.Count(text, "</doc>")
	return exact{}.Count(text) + n*n
}

// shown is a text under a label.
type shown struct{ label, text string }

// machine has any conversation within any window.
type machine struct {
	cfg     history.Config
	pilot   *contextpilot.Pilot
	chat    *history.Chat
	engine  contextpilot.Tokenizer // what the engine really counts
	prompts [][]history.Message
	trims   int
	cut     []string           // roles and first words of what was cut, oldest first
	said    []string           // of all that was said
	refs    map[string][]shown // by the name of a message: what its plan refers to
	n       int
	checked int // references
	gone    int // blocks that cuts have taken away
}

func newMachine(t *rapid.T) *machine {
	m := &machine{engine: exact{}, refs: map[string][]shown{}}
	window := rapid.IntRange(150, 700).Draw(t, "window")
	m.cfg = history.Config{
		Session: "s", System: rapid.SampledFrom([]string{"", "Be brief."}).Draw(t, "system"),
		Window: window, Answer: window / 5,
		Blocks:     rapid.SampledFrom([]int{0, 0, 40}).Draw(t, "block budget"),
		Pinned:     rapid.IntRange(0, 2).Draw(t, "pinned"),
		Low:        rapid.SampledFrom([]int{0, 0, 40, 100}).Draw(t, "low"),
		PerMessage: rapid.SampledFrom([]int{-1, 0, 2}).Draw(t, "per message"),
	}
	if rapid.Bool().Draw(t, "summary") {
		m.cfg.SummaryTokens = 20
		long := rapid.IntRange(0, 40).Draw(t, "summary length")
		fails := rapid.Bool().Draw(t, "summary fails")
		m.cfg.Summarize = func(_ context.Context, cut history.Cut) (string, error) {
			if fails && len(cut.Messages)%2 == 0 {
				return "", errors.New("no summary")
			}
			return words(long, uint64(len(cut.Messages))), nil
		}
	}
	counter := contextpilot.Tokenizer(exact{})
	switch rapid.IntRange(0, 4).Draw(t, "tokenizer") {
	case 0:
		counter, m.engine = contextpilot.Estimate{}, tight{}
	case 1:
		counter, m.engine = sticky{}, sticky{}
	}
	dedup := rapid.SampledFrom([]contextpilot.Dedup{contextpilot.DedupContent, contextpilot.DedupID, contextpilot.DedupOff}).Draw(t, "dedup")
	m.pilot = newPilot(t, contextpilot.Config{
		Tokenizer: counter, Dedup: dedup,
		Notes: contextpilot.Notes{AlwaysHint: rapid.Bool().Draw(t, "hint"), NoLocation: rapid.Bool().Draw(t, "no location")},
	})
	m.chat = newChat(t, m.pilot, m.cfg)
	return m
}

func (m *machine) note(role history.Role, text string) string {
	m.n++
	text = fmt.Sprintf("#%d %s", m.n, text)
	m.said = append(m.said, fmt.Sprintf("%s #%d", role, m.n))
	return text
}

func (m *machine) blocks(t *rapid.T) (blocks []contextpilot.Block) {
	for range rapid.IntRange(0, 4).Draw(t, "blocks") {
		id := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", ""}).Draw(t, "id")
		version := rapid.SampledFrom([]string{"", "", "", " again"}).Draw(t, "version")
		text := "All about " + id + version + strings.Repeat(" and more", len(id)*5)
		blocks = append(blocks, contextpilot.Block{ID: id, Text: text, Tokens: rapid.SampledFrom([]int{0, 1}).Draw(t, "tokens")})
	}
	return blocks
}

// Ask has one turn, with an answer, tool calls, or none of it.
func (m *machine) Ask(t *rapid.T) {
	blocks := m.blocks(t)
	question := m.note(history.User, strings.Repeat("why ", rapid.IntRange(1, 30).Draw(t, "question"))+"?")
	before := m.chat.Messages()
	turn, err := m.chat.Ask(context.Background(), question, blocks...)
	after := m.chat.Messages()
	if err == nil {
		after = after[:len(after)-1]
	}
	m.trimmed(t, turn.Trim, before, after)
	if err != nil {
		m.said = m.said[:len(m.said)-1]
		if !errors.Is(err, history.ErrTooLong) {
			t.Fatal(err)
		}
		return
	}
	if len(turn.Plan.Items)+len(turn.Plan.LeftOut) != len(blocks) || turn.Plan.Fault != nil {
		t.Fatalf("%d blocks: %s", len(blocks), turn.Plan.Explain())
	}
	for _, it := range turn.Plan.Items {
		if it.Ref != nil {
			of := fmt.Sprint("user ", number.FindString(question))
			m.refs[of] = append(m.refs[of], shown{it.Ref.Label, turn.Plan.Block(it.Index).Text})
		}
	}
	m.sent(t, turn.Messages, turn.Trim != nil)
	if n := turn.Tokens; n != m.chat.Tokens() {
		t.Fatalf("%d tokens, then %d", n, m.chat.Tokens())
	}
	if rapid.IntRange(0, 9).Draw(t, "fails?") == 0 {
		m.chat.Drop()
		m.said = m.said[:len(m.said)-1]
		return
	}
	m.pilot.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: turn.Plan.RequestID, Output: 10})
	for range rapid.SampledFrom([]int{0, 0, 0, 1, 3}).Draw(t, "steps") {
		m.step(t)
	}
	m.chat.Answer(m.note(history.Assistant, strings.Repeat("because ", rapid.IntRange(1, 30).Draw(t, "answer"))))
}

// step is one tool call with its result.
func (m *machine) step(t *rapid.T) {
	var add []history.Message
	calls := []string{"x", "y"}[:rapid.IntRange(1, 2).Draw(t, "calls")]
	add = append(add, history.Message{Role: history.Assistant, Text: m.note(history.Assistant, "look"), Calls: calls, Extra: 5})
	for _, id := range calls {
		text := m.note(history.Tool, strings.Repeat("found ", rapid.IntRange(1, 20).Draw(t, "result")))
		add = append(add, history.Message{Role: history.Tool, Text: text, Answers: []string{id}})
	}
	if err := m.chat.Add(add...); err != nil {
		t.Fatal(err)
	}
	before := m.chat.Messages()
	messages, trim, err := m.chat.Continue(context.Background())
	m.trimmed(t, trim, before, m.chat.Messages())
	if err == nil {
		m.sent(t, messages, trim != nil)
	} else if !errors.Is(err, history.ErrTooLong) {
		t.Fatal(err)
	}
}

func (m *machine) trimmed(t *rapid.T, trim *history.Trim, before, after []history.Message) {
	t.Helper()
	if trim == nil {
		return
	}
	m.trims++
	gone := shows(before)
	for b := range shows(after) {
		delete(gone, b)
	}
	if trim.Forgotten != len(gone) {
		t.Fatalf("%d blocks forgotten, want %v", trim.Forgotten, gone)
	}
	m.gone += len(gone)
	for _, c := range trim.Messages {
		m.cut = append(m.cut, name(c))
	}
}

// shows returns the blocks that messages show.
func shows(messages []history.Message) map[shown]bool {
	out := map[shown]bool{}
	for _, x := range messages {
		for r := range markup.Regions(x.Text) {
			out[shown{r.Label, r.Text}] = true
		}
	}
	return out
}

var number = regexp.MustCompile(`#\d+`)

func name(m history.Message) string { return string(m.Role) + " " + number.FindString(m.Text) }

// sent checks a prompt.
func (m *machine) sent(t *rapid.T, messages []history.Message, trimmed bool) {
	t.Helper()
	m.fits(t, messages)
	pairs(t, messages)
	m.complete(t, messages)
	m.refers(t, messages)
	if len(m.prompts) > 0 && !trimmed {
		m.extends(t, messages)
	}
	m.prompts = append(m.prompts, messages)
}

func (m *machine) fits(t *rapid.T, messages []history.Message) {
	t.Helper()
	per := m.cfg.PerMessage
	if per == 0 {
		per = history.DefaultPerMessage
	}
	n := max(per, 0) // what opens the answer
	for _, x := range messages {
		n += m.engine.Count(x.Text) + x.Extra + max(per, 0)
	}
	if n > m.cfg.Window-m.cfg.Answer {
		t.Fatalf("prompt of %d tokens in a window of %d − %d", n, m.cfg.Window, m.cfg.Answer)
	}
}

// pairs: every call has its answers and every answer its call.
func pairs(t *rapid.T, messages []history.Message) {
	t.Helper()
	var open []string
	for _, x := range messages {
		if x.Role != history.Tool && len(open) > 0 {
			t.Fatalf("calls %q are not answered before %q", open, x.Text)
		}
		for _, id := range x.Answers {
			i := slices.Index(open, id)
			if i < 0 {
				t.Fatalf("answer %q without a call", id)
			}
			open = slices.Delete(open, i, i+1)
		}
		open = append(open, x.Calls...)
	}
	if len(open) > 0 {
		t.Fatalf("calls %q are not answered", open)
	}
}

// complete: what was said is in the prompt or was named as cut, once and in order; the pinned turns are in the prompt.
func (m *machine) complete(t *rapid.T, messages []history.Message) {
	t.Helper()
	var here []string
	for _, x := range messages {
		if x.Role != history.System {
			here = append(here, name(x))
		}
	}
	all := slices.Concat(m.cut, here)
	want := slices.Clone(m.said)
	slices.Sort(all)
	slices.Sort(want)
	if !slices.Equal(all, want) {
		t.Fatalf("cut %q and kept %q of %q", m.cut, here, m.said)
	}
	users := 0
	for i, s := range m.said {
		if strings.HasPrefix(s, "user") {
			users++
		}
		if users > m.cfg.Pinned {
			break
		}
		if i >= len(here) || here[i] != s {
			t.Fatalf("pinned %q, but kept %q", m.said[:i+1], here)
		}
	}
}

// refers: whatever a message refers to stands in an earlier one, word for word, or in itself.
func (m *machine) refers(t *rapid.T, messages []history.Message) {
	t.Helper()
	here := map[shown]bool{}
	for _, x := range messages {
		for r := range markup.Regions(x.Text) {
			here[shown{r.Label, r.Text}] = true
		}
		for _, r := range m.refs[name(x)] {
			if !here[r] {
				t.Fatalf("%s refers to %q, which no message up to there shows:\n%+v", name(x), r, messages)
			}
			note := "Please refer to [" + r.label + "] in"
			if shows := strings.Contains(x.Text, "<doc "+r.label+">\n"+r.text); shows && strings.Contains(x.Text, note) {
				t.Fatalf("%s shows %q and refers to it:\n%s", name(x), r.label, x.Text)
			}
			m.checked++
		}
	}
}

// extends: between cuts a prompt begins with the one before it, but for a last turn that was taken back.
func (m *machine) extends(t *rapid.T, messages []history.Message) {
	t.Helper()
	before := m.prompts[len(m.prompts)-1]
	for i, x := range before[:len(before)-1] {
		if i >= len(messages) || messages[i].Text != x.Text {
			t.Fatalf("message %d is %q, was %q", i, messages[i].Text, x.Text)
		}
	}
}

func TestAnyConversation(t *testing.T) {
	trims, prompts, checked, gone := 0, 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		for range rapid.IntRange(1, 25).Draw(t, "turns") {
			m.Ask(t)
		}
		trims += m.trims
		prompts += len(m.prompts)
		checked += m.checked
		gone += m.gone
	})
	t.Logf("%d prompts, %d cuts of %d blocks, %d references", prompts, trims, gone, checked)
	if trims < prompts/100 || checked < prompts/100 || gone < prompts/100 {
		t.Errorf("only %d cuts of %d blocks and %d references in %d prompts", trims, gone, checked, prompts)
	}
}
