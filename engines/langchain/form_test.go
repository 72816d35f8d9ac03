package langchain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/framework"
)

// A prompt of one's own may number the documents and have the hint behind the question.
func TestFormOfThePromptIsKept(t *testing.T) {
	for _, test := range []struct {
		name, format, want string
	}{
		{
			name:   "numbered, without hint",
			format: "1. %s\n2. %s\n3. %s\n4. %s\nWhy?",
			want: "1. <doc d>\nText of d.\n</doc>\n2. <doc c>\nText of c.\n</doc>\n3. <doc b>\nText of b.\n</doc>\n" +
				"Please refer to [a] in the previous conversation.\nWhy?",
		},
		{
			name:   "hint behind the question",
			format: "%s, %s, %s; %s\nWhy?\nPlease read the context in the following priority order: [d] > [a] > [c] > [b] and answer the question.",
			want: "<doc d>\nText of d.\n</doc>, <doc c>\nText of c.\n</doc>, <doc b>\nText of b.\n</doc>\nPlease refer to [a] in the " +
				"previous conversation.\n" +
				"Why?\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			inner := &recorder{}
			// Behind a history the retriever's order is kept, so the old hint has to go.
			pilot := newPilot(t, contextpilot.Config{Policy: "sorted"})
			m := langchain.Wrap(pilot, inner)
			_, first := hold(pilot, "s", "a")
			messages := []llms.MessageContent{human(first + "\n\nWhat?")}
			messages = append(messages, ai(generate(in("s"), t, m, messages)))
			plan, _ := hold(pilot, "s", "d", "a", "c", "b")
			var blocks []any
			for i := range plan.Items {
				blocks = append(blocks, strings.TrimSuffix(plan.RenderItem(i), "\n"))
			}
			messages = append(messages, human(fmt.Sprintf(test.format, blocks...)))
			generate(in("s"), t, m, messages)
			if got := textOf(inner.last().messages[2]); got != test.want {
				t.Errorf("sent:\n%s\nwant:\n%s", got, test.want)
			}
		})
	}
}

// At the front of a prompt the hint stands behind the blocks, once: a program may have put it elsewhere, or want none.
func TestHintAtTheFront(t *testing.T) {
	const hint = "Please read the context in the following priority order: [c] > [a] > [b] and answer the question."
	other := contextpilot.Scope{Replica: "other"}
	for _, test := range []struct {
		name, front, behind string
		want                string // hint behind the blocks
		opts                []langchain.Option
	}{
		{"added", "", "\n\nWhy?", "\n" + hint, nil},
		{"not wanted", "", "\n\nWhy?", "", []langchain.Option{langchain.WithoutHint()}},
		{"there already", "", "\n" + hint + "\n\nWhy?", "", nil},
		{"in front", hint + "\n", " Why?", "", nil},
		{"at the end", "", "\n\nWhy?\n" + hint, "", nil},
		{"at the end of a moved one", "", "\n\nWhy?\n" + hint, "", []langchain.Option{langchain.WithScope(other)}},
		{"moved", "Look:\n", "\n\nWhy?", "\n" + hint, []langchain.Option{langchain.WithScope(other)}},
		{"moved, not wanted", "", "\n\nWhy?", "", []langchain.Option{langchain.WithScope(other), langchain.WithoutHint()}},
	} {
		for _, session := range []string{"", "s"} {
			t.Run(test.name+"/"+session, func(t *testing.T) {
				inner := &recorder{}
				pilot := newPilot(t, contextpilot.Config{Policy: "sorted"})
				m := langchain.Wrap(pilot, inner, test.opts...)
				_, text := hold(pilot, session, "c", "a", "b")
				messages := []llms.MessageContent{human(test.front + text + test.behind)}
				for range 2 { // the second time it is sent again
					generate(in(session), t, m, messages)
					if got, want := textOf(inner.last().messages[0]), test.front+text+test.want+test.behind; got != want {
						t.Errorf("sent:\n%s\nwant:\n%s", got, want)
					}
				}
				if st := pilot.Stats(); st.Plans != 1 || st.LiveRequests != 1 || st.EventsUnknown != 0 {
					t.Errorf("%+v", st)
				}
			})
		}
	}
}

// An order note that was sent at the front stands there in all later turns.
func TestHintStays(t *testing.T) {
	inner := &recorder{}
	c := newChat(t, "s", newPilot(t, contextpilot.Config{Policy: "sorted"}), inner)
	c.ask("What of valve and pump")
	first := textOf(inner.last().messages[0])
	if !strings.Contains(first, "</doc>\nPlease read the context in the following priority order: [valve] > [pump]") {
		t.Errorf("no hint in\n%s", first)
	}
	for _, q := range []string{"Thanks.", "And motor, and pump?"} {
		c.ask(q)
		if got := textOf(inner.last().messages[0]); got != first {
			t.Errorf("sent:\n%s\nwas:\n%s", got, first)
		}
	}
}

// An agent may write down in one message what its tool has found, and send it again with more behind it: what stands there is sent
// as it was. What is found later does not stand at the front.
func TestTextThatGrows(t *testing.T) {
	for _, session := range []string{"s", ""} {
		inner := &recorder{}
		pilot := newPilot(t, contextpilot.Config{Policy: "sorted"})
		m := langchain.Wrap(pilot, inner)
		sent, text := "", "Question: why?\n"
		for i, ids := range [][]string{{"c", "a"}, {"d", "a", "b"}, nil, {"f", "e", "b"}} {
			if ids != nil {
				_, found := hold(pilot, session, ids...)
				text += "Observation: " + found + "\n"
			}
			text += fmt.Sprint("Thought ", i, "\n")
			messages := []llms.MessageContent{human(text)}
			generate(in(session), t, m, messages)
			got := textOf(inner.last().messages[0])
			if !strings.HasPrefix(got, sent) {
				t.Fatalf("sent:\n%s\nwas:\n%s", got, sent)
			}
			generate(in(session), t, m, messages)
			if again := textOf(inner.last().messages[0]); again != got {
				t.Errorf("sent again:\n%s\nwas:\n%s", again, got)
			}
			sent = got
		}
		want := "Question: why?\nObservation: " + blocks("a",
			"c") + "\nPlease read the context in the following priority order: [c] > [a] and answer the question.\nThought 0\n" +
			"Observation: " + blocks("d", "b") + "\nPlease refer to [a] in the previous conversation.\nThought 1\nThought 2\n" +
			"Observation: " + blocks("f", "e") + "\nPlease refer to [b] in the previous conversation.\nThought 3\n"
		if sent != want {
			t.Errorf("session %q: sent:\n%s\nwant:\n%s", session, sent, want)
		}
		if st := pilot.Stats(); st.Plans != 3 || st.LiveRequests != 3 || framework.OffersOf(pilot).Stats().Held != 0 || st.EventsUnknown != 0 {
			t.Errorf("%+v", st)
		}
	}
}

// blocks are the blocks of hold as they stand in a prompt.
func blocks(ids ...string) string {
	var parts []string
	for _, id := range ids {
		parts = append(parts, "<doc "+id+">\nText of "+id+".\n</doc>")
	}
	return strings.Join(parts, "\n\n")
}
