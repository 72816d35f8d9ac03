package framework_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/framework"
)

// echoing sends the best block in its place by ID, and once more behind the others.
var echoing = contextpilot.Config{Policy: "sorted", Top: contextpilot.TopEchoes, Notes: contextpilot.Notes{AlwaysHint: true}}

const echoOfB = "\n<doc b again>\nText of b.\n</doc>"

// An echo stands behind the blocks, in front of the order note; later calls send it again, and refer to the block, not to its echo.
func TestEcho(t *testing.T) {
	c := newChatter(t, echoing)
	blocks := c.retrieve("s", "b", "c", "a")
	messages := []framework.Message{human(blocks + "\nOne?")}
	sent := c.send("s", messages)
	want := blocks + echoOfB + "\nRelevance: [b] > [c] > [a].\nOne?"
	if diff := cmp.Diff(want, sent[0].Texts[0].Value); diff != "" {
		t.Errorf("first turn (-want +got):\n%s", diff)
	}
	messages = append(messages, message(conversation.Assistant, "One."), human(c.retrieve("s", "d", "b")+"\nTwo?"))
	next := c.send("s", messages)
	if diff := cmp.Diff(sent[0], next[0]); diff != "" {
		t.Errorf("the first turn in the second (-want +got):\n%s", diff)
	}
	if got := next[2].Texts[0].Value; !strings.Contains(got, "Please refer to [b]") || strings.Contains(got, "Text of b.") {
		t.Errorf("second turn: %q", got)
	}
	if st := c.pilot.Stats(); st.BlocksRef != 1 {
		t.Errorf("%d references", st.BlocksRef)
	}
}

// A program that renders the prompt itself has the echo in it already.
func TestEchoIsNotDoubled(t *testing.T) {
	c := newChatter(t, echoing)
	plan := c.pilot.Plan(contextpilot.Request{Blocks: []contextpilot.Block{{ID: "b", Text: "Text of b."}, {ID: "c", Text: "Text of c."}}})
	framework.OffersOf(c.pilot).Offer(plan)
	text := plan.Prompt("One?")
	if got := c.send("", []framework.Message{human(text)})[0].Texts[0].Value; got != text || strings.Count(got, "again") != 1 {
		t.Errorf("sent %q, want %q", got, text)
	}
}

// An agent's next step sends the question as the first step did, with its echo, also where its tool has found the blocks in another order.
func TestEchoOfAnAgent(t *testing.T) {
	c := newChatter(t, echoing)
	messages := []framework.Message{human(c.retrieve("s", "b", "c", "a") + "\nWhat?")}
	sent := c.send("s", messages)
	messages = append(messages, message(conversation.Assistant, "That."), message(conversation.Tool, c.retrieve("s", "c", "a", "b")))
	call := c.turns.Begin("s", messages)
	if diff := cmp.Diff(sent, framework.Apply(messages, call.Replacements)[:1]); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	if e := call.Plan.Echo; e == nil || e.Label != "b" || e.Text != "Text of b." || e.Tokens == 0 {
		t.Errorf("plan with echo %+v", e)
	}
}

// Behind other texts blocks stand as retrieved, and nothing is shown twice.
func TestNoEchoBehindOthers(t *testing.T) {
	c := newChatter(t, echoing)
	messages := []framework.Message{human("Hello."), message(conversation.Assistant, "Hello.")}
	c.send("s", messages)
	messages = append(slices.Clip(messages), human(c.retrieve("s", "b", "a")+"\nWhat?"))
	if got := c.send("s", messages)[2].Texts[0].Value; strings.Contains(got, "again>") {
		t.Errorf("sent %q", got)
	}
}

// What looks like an echo in a text of another's is no other text of the block, unless it says something else.
func TestForgedEcho(t *testing.T) {
	for echo, refers := range map[string]bool{"Text of b.": true, "of b": true, "Ask c.": false} {
		c := newChatter(t, echoing)
		messages := []framework.Message{human(c.retrieve("s", "b", "a") + "\nOne?")}
		c.send("s", messages)
		messages = append(messages, message(conversation.Assistant, "<doc b again>\n"+echo+"\n</doc>"), human(c.retrieve("s", "b")+"\nTwo?"))
		got := c.send("s", messages)[2].Texts[0].Value
		if strings.Contains(got, "Please refer to [b]") != refers {
			t.Errorf("with an echo that says %q: %q", echo, got)
		}
	}
}

// A plan that was taken back, since a call was made without it, is entered again as it is sent: with its echo.
func TestEchoIsEnteredAgain(t *testing.T) {
	c := newChatter(t, echoing)
	text := c.retrieve("s", "b", "c", "a") + "\nOne?"
	planned := c.pilot.Stats().IndexTokens
	c.send("s", []framework.Message{human("Hello.")})
	if n := c.pilot.Stats().IndexTokens; n >= planned {
		t.Fatalf("%d of %d tokens are in the index behind a call without the plan", n, planned)
	}
	c.send("s", []framework.Message{human(text)})
	if n := c.pilot.Stats().IndexTokens; n != planned {
		t.Errorf("%d tokens in the index, planned were %d", n, planned)
	}
}
