package langchain_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/retriever"
)

// chat is a program that keeps all messages and sends them each time.
type chat struct {
	t        tb
	ctx      context.Context
	find     func(question string) string
	model    llms.Model
	messages []llms.MessageContent
}

func newChat(t tb, session string, pilot *contextpilot.Pilot, inner llms.Model) *chat {
	c := &chat{t: t, ctx: in(session), model: langchain.Wrap(pilot, inner)}
	r := retriever.Wrap(pilot, machines())
	c.find = func(question string) string {
		docs, err := r.GetRelevantDocuments(c.ctx, question)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, d := range docs {
			texts = append(texts, d.PageContent)
		}
		return strings.Join(texts, "\n\n")
	}
	return c
}

// ask sends a question with its documents behind all that was said.
func (c *chat) ask(question string) {
	c.t.Helper()
	text := question
	if docs := c.find(question); docs != "" {
		text = "Documents:\n\n" + docs + "\n\nQuestion: " + question
	}
	c.messages = append(c.messages, human(text))
	before := deepCopy(c.messages)
	said := generate(c.ctx, c.t, c.model, c.messages)
	if diff := cmp.Diff(before, c.messages); diff != "" {
		c.t.Errorf("the caller's messages were changed: %s", diff)
	}
	c.messages = append(c.messages, ai(said))
}

func TestResentBlocksBecomeReferences(t *testing.T) {
	inner := &recorder{}
	pilot := newPilot(t, contextpilot.Config{})
	c := newChat(t, "s", pilot, inner)
	c.ask("Explain pump and valve")
	c.ask("Compare pump, motor and valve")
	full := func(name string) string {
		return "<doc " + name + ">\n" + machines()[name].PageContent + "\n</doc>"
	}
	want := "Documents:\n\n" + full("motor") + "\n" +
		"Please refer to [pump] in the previous conversation.\n" +
		"Please refer to [valve] in the previous conversation.\n\n" +
		"Question: Compare pump, motor and valve"
	if got := textOf(inner.last().messages[2]); got != want {
		t.Errorf("sent:\n%s\nwant:\n%s", got, want)
	}
	if diff := cmp.Diff(c.messages[:2], inner.last().messages[:2]); diff != "" {
		t.Errorf("earlier messages were changed: %s", diff)
	}
	c.ask("Again: pump, motor, valve")
	want = "Documents:\n\n" +
		"Please refer to [pump] in the previous conversation.\n" +
		"Please refer to [motor] in the previous conversation.\n" +
		"Please refer to [valve] in the previous conversation.\n\n" +
		"Question: Again: pump, motor, valve"
	if got := textOf(inner.last().messages[4]); got != want {
		t.Errorf("sent:\n%s\nwant:\n%s", got, want)
	}
	if st := pilot.Stats(); st.LiveRequests != 3 || framework.OffersOf(pilot).Stats().Held != 0 || st.BlocksRef != 5 {
		t.Errorf("%+v", st)
	}
}

// The engine must see the same history in each turn, whatever was rewritten in it.
func TestRewritingIsRepeated(t *testing.T) {
	inner := &recorder{}
	c := newChat(t, "s", newPilot(t, contextpilot.Config{}), inner)
	questions := []string{
		"Explain pump and valve", "And motor, and pump?", "Thanks!", "Compare valve, pump and motor", "Which pump?", "Bye.",
	}
	history := []llms.MessageContent{}
	for _, q := range questions {
		c.ask(q)
		got := inner.last().messages
		if diff := cmp.Diff(history, got[:len(history)]); diff != "" {
			t.Fatalf("%q came behind another history: %s", q, diff)
		}
		history = append(deepCopy(got), c.messages[len(c.messages)-1])
		checkReferences(t, got)
	}
	if !strings.Contains(textOf(inner.last().messages[2]), "refer to [pump]") {
		t.Error("nothing was rewritten")
	}
}

// checkReferences checks that every reference points to a block that stands in an earlier message.
func checkReferences(t tb, messages []llms.MessageContent) {
	t.Helper()
	note := regexp.MustCompile(`Please refer to \[(\w+)\] in`)
	for i, m := range messages {
		for _, ref := range note.FindAllStringSubmatch(textOf(m), -1) {
			found := false
			for _, earlier := range messages[:i] {
				found = found || strings.Contains(textOf(earlier), "<doc "+ref[1]+">\n"+machines()[ref[1]].PageContent+"\n</doc>")
			}
			if !found {
				t.Errorf("message %d refers to [%s], which stands nowhere before it", i, ref[1])
			}
		}
	}
}

// A program that forgets the oldest messages takes away what later ones referred to.
func TestForgottenMessagesAreNotReferredTo(t *testing.T) {
	inner := &recorder{}
	c := newChat(t, "s", newPilot(t, contextpilot.Config{}), inner)
	for _, q := range []string{"Explain pump", "The pump and motor?", "Is the valve like the pump?", "Now pump, valve and motor"} {
		c.ask(q)
		checkReferences(t, inner.last().messages)
		if len(c.messages) > 4 {
			c.messages = c.messages[2:]
		}
	}
	if got := textOf(inner.last().messages[0]); !strings.Contains(got, "<doc pump>") || !strings.Contains(got, "<doc motor>") {
		t.Errorf("the first message left is sent as\n%s", got)
	}
}

func TestEditedHistoryIsSentAsItIs(t *testing.T) {
	inner := &recorder{}
	c := newChat(t, "s", newPilot(t, contextpilot.Config{}), inner)
	c.ask("Explain pump")
	c.ask("The pump and motor?")
	c.messages[0] = human("I asked about something.")
	c.ask("And the pump?")
	checkReferences(t, inner.last().messages)
	if diff := cmp.Diff(c.messages[:4], inner.last().messages[:4]); diff != "" {
		t.Error(diff)
	}
}

// A second and a third call with the same messages, after other retrievals, are rewritten as the first was.
func TestRegenerated(t *testing.T) {
	inner := &recorder{}
	pilot := newPilot(t, contextpilot.Config{})
	c := newChat(t, "s", pilot, inner)
	c.ask("Explain pump")
	c.ask("The pump and motor?")
	first := textOf(inner.last().messages[2])
	for range 2 {
		c.messages = c.messages[:2]
		c.ask("The pump and motor?")
		if got := textOf(inner.last().messages[2]); got != first || !strings.Contains(got, "refer to [pump]") {
			t.Errorf("sent:\n%s\nfirst:\n%s", got, first)
		}
	}
}

func TestFailedTurnIsNotReferredTo(t *testing.T) {
	inner := &recorder{}
	pilot := newPilot(t, contextpilot.Config{})
	c := newChat(t, "s", pilot, inner)
	c.ask("Explain pump")
	inner.do = func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) {
		return nil, engines.ErrUnreachable
	}
	failed := append(deepCopy(c.messages), human(c.find("Explain motor and pump")+"\nWell?"))
	if _, err := c.model.GenerateContent(c.ctx, failed); err == nil {
		t.Fatal("no error")
	}
	if n := pilot.Stats().LiveRequests; n != 1 {
		t.Errorf("%d live requests, want the first one only", n)
	}
	inner.do = nil
	c.ask("Explain motor and pump")
	want := "<doc motor>\n" + machines()["motor"].PageContent + "\n</doc>\nPlease refer to [pump] in the previous conversation."
	if got := textOf(inner.last().messages[2]); !strings.Contains(got, want) {
		t.Errorf("sent:\n%s", got)
	}
}

// Behind a history no order gains anything: the documents are sent as they were retrieved, without an order note, also where nothing
// is referred to and where the conversation has no name. What was sent once is sent again.
func TestBehindAHistoryTheOrderIsTheRetrievers(t *testing.T) {
	for _, policy := range contextpilot.PolicyNames() {
		for _, session := range []string{"s", ""} {
			inner := &recorder{}
			pilot := newPilot(t, contextpilot.Config{Policy: policy})
			c := newChat(t, session, pilot, inner)
			c.ask("Hello!")
			for i, q := range []string{"What of valve and pump", "pump, valve and motor?", "And valve, motor, pump?"} {
				c.ask(q)
				sent := inner.last().messages
				got := textOf(sent[len(sent)-1])
				if strings.Contains(got, "priority order") {
					t.Errorf("%s: an order note behind a history:\n%s", policy, got)
				}
				var want []string
				for word := range strings.FieldsSeq(q) {
					word = strings.Trim(word, ",?")
					if _, ok := machines()[word]; ok && strings.Contains(got, "<doc "+word+">") {
						want = append(want, word)
					}
				}
				var order []string
				for _, m := range regexp.MustCompile(`<doc (\w+)>`).FindAllStringSubmatch(got, -1) {
					order = append(order, m[1])
				}
				if i == 0 && len(order) < 2 || !slices.Equal(order, want) {
					t.Errorf("%s: %q, retrieved was %q:\n%s", policy, order, want, got)
				}
				checkReferences(t, sent)
				checkTexts(t, c.messages[:len(sent)], sent)
			}
			if !strings.Contains(textOf(inner.last().messages[6]), "refer to [valve]") {
				t.Errorf("%s: nothing is referred to", policy)
			}
			if st := pilot.Stats(); st.Plans != 3 || st.LiveRequests != 3 || st.Reordered != 0 {
				t.Errorf("%s: %+v", policy, st)
			}
			history := inner.last().messages
			c.ask("Thanks!")
			if diff := cmp.Diff(history, inner.last().messages[:len(history)]); diff != "" {
				t.Errorf("%s: the history has changed: %s", policy, diff)
			}
		}
	}
}

// A conversation without a name gets the references that one with a name gets: they follow from the messages.
func TestWithoutName(t *testing.T) {
	var sent [2][]llms.MessageContent
	for i, session := range []string{"s", ""} {
		inner := &recorder{}
		c := newChat(t, session, newPilot(t, contextpilot.Config{}), inner)
		c.ask("Explain pump")
		c.ask("Explain pump")
		sent[i] = inner.last().messages
	}
	if diff := cmp.Diff(sent[0], sent[1]); diff != "" {
		t.Error(diff)
	}
	if text := textOf(sent[1][2]); !strings.Contains(text, "refer to [pump]") {
		t.Errorf("sent:\n%s", text)
	}
}

// A program that goes on after a restart gets references to the blocks that its messages show.
func TestGoesOnAfterRestart(t *testing.T) {
	before := newChat(t, "", newPilot(t, contextpilot.Config{}), &recorder{})
	before.ask("Explain pump")
	inner := &recorder{}
	c := newChat(t, "", newPilot(t, contextpilot.Config{}), inner)
	c.messages = before.messages
	c.ask("Explain pump and valve")
	text := textOf(inner.last().messages[2])
	if !strings.Contains(text, "refer to [pump]") || !strings.Contains(text, "<doc valve>") {
		t.Errorf("sent:\n%s", text)
	}
	checkReferences(t, inner.last().messages)
}

// With an engine behind it, each turn computes little more than its new block: all that was sent and answered before
// is read from the cache.
func TestHistoryStaysInTheCache(t *testing.T) {
	pilot := newPilot(t, contextpilot.Config{})
	engine := sim.New(sim.Options{})
	var usage []engines.Usage
	inner := langchain.Model(&metered{Engine: engine, usage: &usage})
	c := newChat(t, "s", pilot, inner)
	for _, q := range []string{"Explain pump", "The pump and valve?", "And the valve and motor?", "Now pump, motor and valve"} {
		c.ask(q)
	}
	for i, u := range usage[1:] {
		if before := usage[i].PromptTokens; u.CachedTokens < before-before%sim.DefaultBlockTokens {
			t.Errorf("turn %d read %d tokens from the cache, but turn %d had %d", i+2, u.CachedTokens, i+1, before)
		}
	}
	last := usage[len(usage)-1]
	if computed := last.PromptTokens - last.CachedTokens; computed > 100 {
		t.Errorf("the last turn computed %d tokens without a new block", computed)
	}
	if got := pilot.Stats().PrefixReported; got != int64(engine.Stats().HitTokens) {
		t.Errorf("the pilot counts %d cached tokens, the engine counts %d", got, engine.Stats().HitTokens)
	}
}

// metered notes the usage of each answer.
type metered struct {
	engines.Engine
	usage *[]engines.Usage
}

func (m *metered) Generate(ctx context.Context, req engines.Request, onText func(string) error) (engines.Response, error) {
	r, err := m.Engine.Generate(ctx, req, onText)
	*m.usage = append(*m.usage, r.Usage)
	return r, err
}

// What the retriever left out for its budget must not come back when the wrapper plans anew.
func TestBudgetHolds(t *testing.T) {
	inner := &recorder{}
	pilot := newPilot(t, contextpilot.Config{})
	var sent contextpilot.Plan
	r := retriever.Wrap(pilot, machines(), retriever.WithBudget(250), retriever.WithHeadTokens(32))
	m := langchain.Wrap(pilot, inner, langchain.WithPlans(func(p contextpilot.Plan) { sent = p }))
	var messages []llms.MessageContent
	for _, question := range []string{"pump", "pump valve motor"} {
		docs, err := r.GetRelevantDocuments(in("s"), question)
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, d := range docs {
			text += d.PageContent + "\n\n"
		}
		messages = append(messages, human(text+question))
		messages = append(messages, ai(generate(in("s"), t, m, messages)))
	}
	var labels []string
	for _, it := range sent.Items {
		labels = append(labels, it.Label)
	}
	if want := []string{"valve", "pump"}; !slices.Equal(labels, want) || sent.Items[1].Ref == nil {
		t.Errorf("sent %q, want valve in full and a reference to pump", labels)
	}
	if want := 32 + 96; sent.Prefix.Tokens < want { // head and the pump's block, in whole engine blocks
		t.Errorf("%d tokens expected in the cache, want at least %d", sent.Prefix.Tokens, want)
	}
}
