package framework_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/framework"
)

// chatter is a program that retrieves for a pilot and sends what Calls say.
type chatter struct {
	pilot *contextpilot.Pilot
	turns *framework.Calls
}

func newChatter(t *testing.T, cfg contextpilot.Config) *chatter {
	t.Helper()
	pilot, err := contextpilot.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &chatter{pilot, framework.NewCalls(pilot, framework.Options{})}
}

// retrieve offers a plan of documents and returns them as a program puts them into its text.
func (c *chatter) retrieve(session string, ids ...string) string {
	req := contextpilot.Request{}
	for _, id := range ids {
		req.Blocks = append(req.Blocks, contextpilot.Block{ID: id, Text: "Text of " + id + "."})
	}
	plan := c.pilot.Plan(req)
	plan.Session = session
	framework.OffersOf(c.pilot).Offer(plan)
	return strings.TrimSuffix(plan.Context(), "\n")
}

// send returns the messages as they are sent.
func (c *chatter) send(session string, messages []framework.Message) []framework.Message {
	call := c.turns.Begin(session, messages)
	call.End(contextpilot.Event{Kind: contextpilot.Served})
	return framework.Apply(messages, call.Replacements)
}

// restarted returns messages as they are sent in the next turn after a restart.
func restarted(t *testing.T, cfg contextpilot.Config, messages []framework.Message) []framework.Message {
	t.Helper()
	next := append(slices.Clip(messages), message(conversation.Assistant, "Well."), human("Thanks."))
	return newChatter(t, cfg).send("s", next)[:len(messages)]
}

// Blocks that a program has written in another form stay in full, and count so.
func TestWrittenOtherwise(t *testing.T) {
	c := newChatter(t, contextpilot.Config{})
	messages := []framework.Message{human(c.retrieve("s", "a") + "\nOne?")}
	c.send("s", messages)
	c.retrieve("s", "a")
	text := "<doc a fence=q>\nText of a.\n</doc q>\nTwo?"
	messages = append(messages, message(conversation.Assistant, "One."), human(text))
	if got := c.send("s", messages)[2].Texts[0].Value; got != text {
		t.Error(got)
	}
	if st := c.pilot.Stats(); st.Plans != 2 || st.BlocksRef != 0 || st.BlocksSent != 2 {
		t.Errorf("%d plans, %d blocks in full, %d as references", st.Plans, st.BlocksSent, st.BlocksRef)
	}
}

// A user's instruction that looks like a block stays, also where an earlier message has it.
func TestInstructionsStay(t *testing.T) {
	c := newChatter(t, contextpilot.Config{})
	form := "Answer in this form: <doc title>\nthe text\n</doc>\n"
	messages := []framework.Message{human(form + "One?")}
	for range 3 {
		if diff := cmp.Diff(messages, c.send("", messages)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		messages = append(messages, message(conversation.Assistant, "One."), human(form+"Two?"))
	}
}

func human(texts ...string) framework.Message {
	m := framework.Message{Role: conversation.User}
	for _, text := range texts {
		m.Texts = append(m.Texts, conversation.Text{Value: text})
	}
	return m
}

// What was sent in full beside a plan, or with a part of one, is sent so in later calls, too, though a text in front shows it.
func TestHistoryIsSentAgain(t *testing.T) {
	for name, second := range map[string]func(*chatter) framework.Message{
		"a part": func(c *chatter) framework.Message {
			c.retrieve("s", "b", "c")
			return human("<doc b>\nText of b.\n</doc>\nTwo?")
		},
		"two plans": func(c *chatter) framework.Message { return human(c.retrieve("s", "c"), c.retrieve("s", "a"), "Two?") },
		"the user's own": func(c *chatter) framework.Message {
			return human(c.retrieve("s", "c"), "<doc b>\nText of b.\n</doc>\nTwo?")
		},
		"no plan for it":    func(*chatter) framework.Message { return human("<doc b>\nText of b.\n</doc>\nTwo?") },
		"a plan for it all": func(c *chatter) framework.Message { return human(c.retrieve("s", "c", "a") + "\nTwo?") },
	} {
		c := newChatter(t, contextpilot.Config{})
		messages := []framework.Message{human(c.retrieve("s", "a", "b") + "\nOne?")}
		c.send("s", messages)
		messages = append(messages, message(conversation.Assistant, "One."), second(c))
		sent := c.send("s", messages)
		messages = append(messages, message(conversation.Assistant, "Two."), human("Three?"))
		if diff := cmp.Diff(sent, c.send("s", messages)[:3]); diff != "" {
			t.Errorf("%s: the next call (-before +after):\n%s", name, diff)
		}
	}
}

// A text that no plan is known for keeps the words that its author has put between blocks.
func TestWordsBetweenBlocks(t *testing.T) {
	c := newChatter(t, contextpilot.Config{})
	text := "Compare\n<doc a>\nText of a.\n</doc>\nwith this, but not the prices:\n<doc b>\nText of b.\n</doc>\nWell?"
	sent := c.send("s", []framework.Message{
		human("<doc a>\nText of a.\n</doc>\nWhat?"), message(conversation.Assistant, "That."),
		human(text),
	})
	if got := sent[2].Texts[0].Value; !strings.Contains(got, "with this, but not the prices:") {
		t.Errorf("%q", got)
	}
}

// A user's text and a tool's, both in a user's message, are two beginnings of conversations.
func TestOneTextOfTwo(t *testing.T) {
	c := newChatter(t, contextpilot.Config{})
	messages := []framework.Message{human(c.retrieve("s", "a"))}
	c.send("s", messages)
	messages = append(messages, message(conversation.Assistant, "One."), human(c.retrieve("s", "a")+"\nTwo?"))
	if got := c.send("s", messages)[2].Texts[0].Value; !strings.Contains(got, "refer to [a]") {
		t.Fatalf("%q", got)
	}
	messages[0].Texts = []conversation.Text{{Value: messages[0].Texts[0].Value, Role: conversation.Tool, Call: "1"}}
	if got := c.send("t", messages)[2].Texts[0].Value; strings.Contains(got, "refer to [a]") {
		t.Errorf("refers to what a tool has returned: %q", got)
	}
}

// Two conversations begin with the same bytes, planned from other ranks: what one has sent stays, and its references are to its own
// requests.
func TestSharedBeginning(t *testing.T) {
	answer := message(conversation.Assistant, "That.")
	for place, first := range map[string][]framework.Message{"front": nil, "behind": {human("Hello."), answer}} {
		c := newChatter(t, contextpilot.Config{Policy: "sorted", Notes: contextpilot.Notes{AlwaysHint: true}})
		one := append(slices.Clip(first), human(c.retrieve("one", "b", "a"), "What?"))
		call := c.turns.Begin("one", one)
		call.End(contextpilot.Event{Kind: contextpilot.Served})
		sent := framework.Apply(one, call.Replacements)
		c.send("two", append(slices.Clip(first), human(c.retrieve("two", "a", "b"), "What?")))
		one = append(one, answer, human(c.retrieve("one", "a")+"\nAnd?"))
		next := c.turns.Begin("one", one)
		if diff := cmp.Diff(sent, framework.Apply(one, next.Replacements)[:len(sent)]); diff != "" {
			t.Errorf("%s: the next call (-before +after):\n%s", place, diff)
		}
		if ref := next.Plan.Items[0].Ref; ref == nil || ref.RequestID != call.Plan.RequestID {
			t.Errorf("%s: refers to %+v, want request %s", place, ref, call.Plan.RequestID)
		}
	}
}

// An agent's tool finds the documents of the question in another order: the question is sent as in the first step.
func TestAgentFindsTheSame(t *testing.T) {
	answer := message(conversation.Assistant, "That.")
	for place, first := range map[string][]framework.Message{"front": nil, "behind": {human("Hello."), answer}} {
		c := newChatter(t, contextpilot.Config{Policy: "sorted", Notes: contextpilot.Notes{AlwaysHint: true}})
		messages := append(slices.Clip(first), human(c.retrieve("s", "b", "a")+"\nWhat?"))
		sent := c.send("s", messages)
		messages = append(messages, answer, message(conversation.Tool, c.retrieve("s", "a", "b")))
		call := c.turns.Begin("s", messages)
		if diff := cmp.Diff(sent, framework.Apply(messages, call.Replacements)[:len(sent)]); diff != "" || !call.Planned {
			t.Errorf("%s: the next step, planned %v (-before +after):\n%s", place, call.Planned, diff)
		}
		if text := sent[len(first)].Texts[0].Value; !strings.Contains(text, call.Plan.Hint) || (call.Plan.Hint == "") != (first != nil) {
			t.Errorf("%s: hint %q of %q", place, call.Plan.Hint, text)
		}
	}
}

// A call that failed, or that has not ended yet, has sent its messages: later calls send them so.
func TestCallThatDidNotEnd(t *testing.T) {
	for name, end := range map[string]func(call *framework.Call){
		"failed": func(call *framework.Call) { call.End(framework.Outcome(false, 0, 0)) },
		"open":   func(*framework.Call) {},
	} {
		c := newChatter(t, contextpilot.Config{Policy: "sorted", Notes: contextpilot.Notes{AlwaysHint: true}})
		messages := []framework.Message{human(c.retrieve("s", "b", "a") + "\nWhat?")}
		call := c.turns.Begin("s", messages)
		sent := framework.Apply(messages, call.Replacements)
		end(call)
		if diff := cmp.Diff(sent, c.send("s", messages)); diff != "" {
			t.Errorf("%s: the same call (-before +after):\n%s", name, diff)
		}
		messages = append(messages, message(conversation.Assistant, "That."), human(c.retrieve("s", "c", "b")+"\nAnd?"))
		got := c.send("s", messages)
		if diff := cmp.Diff(sent, got[:1]); diff != "" {
			t.Errorf("%s: the next call (-before +after):\n%s", name, diff)
		}
		if text := got[2].Texts[0].Value; !strings.Contains(text, "refer to [b]") {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// A long history that no plan is known for, as after a restart, is looked at once, not once for each of its texts. What is looked at is
// gathered in memory, so its bytes are counted.
func TestLongUnknownHistory(t *testing.T) {
	history := func(n int) (messages []framework.Message) {
		for i := range n {
			text := fmt.Sprintf("<doc a%d>\n%s\n</doc>\n<doc b>\nText of b.\n</doc>\nWhat?", i, strings.Repeat(fmt.Sprint("Text ", i), 100))
			messages = append(messages, human(text), message(conversation.Assistant, "That."))
		}
		return append(messages, human("And?"))
	}
	used := func(messages []framework.Message) uint64 {
		c := newChatter(t, contextpilot.Config{})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		sent := c.send("s", messages)
		runtime.ReadMemStats(&after)
		last := fmt.Sprintf("<doc a%d>", len(messages)/2-1)
		if got := sent[len(messages)-3].Texts[0].Value; !strings.Contains(got, last) || !strings.Contains(got, "refer to [b]") {
			t.Errorf("%.100q", got)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	used(history(10)) // what is made once
	short, long := used(history(500)), used(history(4000))
	t.Logf("500 texts used %d bytes, 4000 used %d", short, long)
	if long > 16*short { // linear: 8 times as many; quadratic: tends to 64 times
		t.Errorf("500 texts used %d bytes, 4000 used %d", short, long)
	}
}

// A document template that has a caption for each document.
func TestCaptionsStay(t *testing.T) {
	c := newChatter(t, contextpilot.Config{Policy: "sorted"})
	c.retrieve("s", "b", "a")
	text := "Source a.md:\n<doc a>\nText of a.\n</doc>\nSource b.md:\n<doc b>\nText of b.\n</doc>\nWhat?"
	sent := c.send("s", []framework.Message{human("Hello."), message(conversation.Assistant, "Hello."), human(text)})
	if got := sent[2].Texts[0].Value; strings.Contains(got, "Source a.md:\n<doc b>") || strings.Contains(got, "Source b.md:\n<doc a>") {
		t.Errorf("%s", got)
	}
	c = newChatter(t, contextpilot.Config{})
	msgs := []framework.Message{human(c.retrieve("s", "a") + "\nOne?")}
	c.send("s", msgs)
	c.retrieve("s", "a", "b")
	msgs = append(msgs, message(conversation.Assistant, "Hello."), human(text))
	sent = c.send("s", msgs)
	if got := sent[2].Texts[0].Value; strings.Contains(got, "Source a.md:\n<doc b>") || !strings.Contains(got, "Source b.md") {
		t.Errorf("%s", got)
	}
}

// An agent whose text has the blocks of a plan with its question between them.
func TestQuestionBetweenBlocks(t *testing.T) {
	c := newChatter(t, contextpilot.Config{})
	doc := func(id string) string { return "<doc " + id + ">\nText of " + id + ".\n</doc>" }
	c.retrieve("s", "a", "b")
	text := doc("a") + "\nWhich of them is right?\nObserved:\n" + doc("b")
	sent := c.send("s", []framework.Message{human(doc("a") + "\nOne?"), message(conversation.Assistant, "Hello."), human(text)})
	if got := sent[2].Texts[0].Value; !strings.Contains(got, "Which of them is right?") {
		t.Errorf("%s", got)
	}
}

// Words that stand in front of each document, but for its number, are no caption of one.
func TestNumberedDocuments(t *testing.T) {
	c := newChatter(t, contextpilot.Config{Policy: "retrieval"})
	messages := []framework.Message{human(c.retrieve("s", "a") + "\nOne?"), message(conversation.Assistant, "That.")}
	c.send("s", messages[:1])
	c.retrieve("s", "b", "a")
	text := "Read this.\nDocument 1:\n<doc b>\nText of b.\n</doc>\nDocument 2:\n<doc a>\nText of a.\n</doc>\nWhat?"
	want := "Read this.\nDocument 1:\n<doc b>\nText of b.\n</doc>\nPlease refer to [a] in the previous conversation.\nWhat?"
	messages = append(messages, human(text))
	if got := c.send("s", messages)[2].Texts[0].Value; got != want {
		t.Errorf("%s", got)
	}
	if got := restarted(t, contextpilot.Config{}, messages)[2].Texts[0].Value; got != want {
		t.Errorf("after a restart: %s", got)
	}
}

// Two tenants have conversations of one name that retrieve the same document: each call finds the plan of its own tenant.
func TestTenantsOfOneName(t *testing.T) {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, session := range []string{"", "s"} {
		var ids []string
		var turns []*framework.Calls
		for _, tenant := range []string{"one", "two"} {
			scope := contextpilot.Scope{Tenant: tenant}
			plan := pilot.Plan(contextpilot.Request{Scope: scope, Blocks: []contextpilot.Block{{ID: "a", Text: "Text of a."}}})
			plan.Session = session
			framework.OffersOf(pilot).Offer(plan)
			ids, turns = append(ids, plan.RequestID), append(turns, framework.NewCalls(pilot, framework.Options{Scope: &scope}))
		}
		for _, i := range []int{1, 0} {
			call := turns[i].Begin(session, []framework.Message{human("<doc a>\nText of a.\n</doc>\nWhat?")})
			if !call.Planned || call.Plan.RequestID != ids[i] {
				t.Errorf("session %q, tenant %d: planned %v, request %s, want %s", session, i, call.Planned, call.Plan.RequestID, ids[i])
			}
		}
	}
	if st := pilot.Stats(); st.Plans != 4 || st.LiveRequests != 4 {
		t.Errorf("%d plans, %d live", st.Plans, st.LiveRequests)
	}
}

// After a restart a text has the references that it had, also if blocks have labels that were made from their IDs, or from their texts.
func TestMadeLabelsAfterRestart(t *testing.T) {
	cfg := contextpilot.Config{Policy: "retrieval"}
	c := newChatter(t, cfg)
	messages := []framework.Message{human(c.retrieve("s", "my file", "b", "") + "\nOne?")}
	c.send("s", messages)
	messages = append(messages, message(conversation.Assistant, "That."), human(c.retrieve("s", "your file", "my file", "b", "")+"\nTwo?"))
	want := c.send("s", messages)
	if text := want[2].Texts[0].Value; strings.Count(text, "refer to [") != 3 {
		t.Fatalf("%s", text)
	}
	if diff := cmp.Diff(want, restarted(t, cfg, messages)); diff != "" {
		t.Errorf("after a restart (-before +after):\n%s", diff)
	}
	messages[2] = human("<doc myfile~0123456789abcdef>\nOther text.\n</doc>\n<doc c>\nText of a.\n</doc>\nTwo?")
	messages[0] = human("<doc myfile~0123456789abcdef>\nText of a.\n</doc>\nOne?")
	if text := restarted(t, cfg, messages)[2].Texts[0].Value; text != messages[2].Texts[0].Value {
		t.Errorf("a label of two texts: %s", text)
	}
}

// The user gives another text the label of a block that an earlier message shows: the block is sent in full.
func TestLabelOfUsersOwn(t *testing.T) {
	own := "<doc a>\nMine.\n</doc>"
	for name, message := range map[string]func(context string) framework.Message{
		"one text":  func(context string) framework.Message { return human(own + "\nNot:\n" + context + "\nTwo?") },
		"two texts": func(context string) framework.Message { return human(own, context+"\nTwo?") },
	} {
		c := newChatter(t, contextpilot.Config{})
		messages := []framework.Message{human(c.retrieve("s", "a", "b") + "\nOne?"), {Role: conversation.Assistant}}
		c.send("s", messages[:1])
		sent := c.send("s", append(messages, message(c.retrieve("s", "a", "b"))))[2]
		text := sent.Texts[len(sent.Texts)-1].Value
		if strings.Contains(text, "refer to [a]") || !strings.Contains(text, "refer to [b]") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
