package langchain_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/framework"
)

// Whatever a program does with its chat (asks, asks again, forgets, edits, lets another program share the pilot),
// what is sent is the caller's text but for blocks that stand in an earlier message, and an untouched history is sent
// as it was.
func TestAnyChat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pilot := newPilot(t, contextpilot.Config{Policy: rapid.SampledFrom(contextpilot.PolicyNames()).Draw(t, "policy")})
		inner := &recorder{}
		c := newChat(t, "s", pilot, inner)
		other := newChat(t, "other", pilot, &recorder{})
		var history []llms.MessageContent // as sent and answered
		question := rapid.Custom(func(t *rapid.T) string {
			names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"pump", "valve", "motor"}), 0, 3, rapid.ID[string]).Draw(t, "names")
			return strings.Join(append(names, "?"), " ")
		})
		ask := func(q string) {
			c.ask(q)
			sent := inner.last().messages
			checkReferences(t, sent)
			checkTexts(t, c.messages[:len(sent)], sent)
			if n := len(history); n > 0 {
				if diff := cmp.Diff(history, sent[:n]); diff != "" {
					t.Errorf("came behind another history: %s", diff)
				}
			}
			history = append(deepCopy(sent), c.messages[len(c.messages)-1])
		}
		t.Repeat(map[string]func(*rapid.T){
			"ask":        func(t *rapid.T) { ask(question.Draw(t, "question")) },
			"other asks": func(t *rapid.T) { other.ask(question.Draw(t, "question")) },
			"regenerate": func(t *rapid.T) {
				if n := len(c.messages); n >= 2 {
					c.messages, history = c.messages[:n-2], history[:max(len(history)-2, 0)]
					ask(question.Draw(t, "question"))
				}
			},
			"forget": func(*rapid.T) {
				if len(c.messages) >= 4 {
					c.messages, history = c.messages[2:], nil
				}
			},
			"edit": func(*rapid.T) {
				if len(c.messages) > 0 {
					c.messages, history = slices.Clone(c.messages), nil
					c.messages[0] = human("Something else.")
				}
			},
		})
		if st := pilot.Stats(); framework.OffersOf(pilot).Stats().Held != 0 || st.Faults() != 0 || st.EventsUnknown != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// Whatever a program does with what it retrieves (asks about all of it at the front or behind a history, about one document at a time,
// about some, or not at all), the index holds the prompts that were sent, notes name what stands in their prompt, and behind a
// history the documents stand as they were retrieved.
func TestIndexHoldsWhatWasSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pilot := newPilot(t, contextpilot.Config{Policy: rapid.SampledFrom(contextpilot.PolicyNames()).Draw(t, "policy")})
		inner := &recorder{}
		m := langchain.Wrap(pilot, inner)
		other := framework.NewCalls(pilot, framework.Options{}) // another model of the conversation
		var messages []llms.MessageContent
		find := rapid.Custom(func(t *rapid.T) []string {
			return rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), 1, 4, rapid.ID[string]).Draw(t, "found")
		})
		live := int64(0)
		send := func(documents int, retrieved []string, messages ...llms.MessageContent) {
			generate(in("s"), t, m, messages)
			call := inner.last()
			text := textOf(call.messages[len(messages)-1])
			checkNotes(t, text)
			if (call.id != "") != (documents > 0) {
				t.Errorf("a request with %d documents is tied to %q:\n%s", documents, call.id, text)
			}
			if documents > 0 {
				live++
			}
			labels := labelsOf(text)
			if len(messages) > 1 && documents == len(retrieved) {
				rank := func(label string) int { return slices.Index(retrieved, label) }
				if !slices.IsSortedFunc(labels, func(a, b string) int { return rank(a) - rank(b) }) || strings.Contains(text, "priority order") {
					t.Errorf("retrieved was %q, sent was\n%s", retrieved, text)
				}
			}
			if n := len(labels) + strings.Count(text, "refer to ["); n != documents {
				t.Errorf("%d of %d documents are there:\n%s", n, documents, text)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"at the front": func(t *rapid.T) {
				ids := find.Draw(t, "documents")
				_, text := hold(pilot, "s", ids...)
				send(len(ids), ids, human(text+"\nWhy?"))
				messages = nil // the conversation begins anew
			},
			"behind a history": func(t *rapid.T) {
				if messages == nil {
					messages = []llms.MessageContent{human("Hello."), ai("Hm.")}
				}
				ids := find.Draw(t, "documents")
				_, text := hold(pilot, "s", ids...)
				messages = append(messages, human(text+"\nWhy?"))
				send(len(ids), ids, messages...)
				messages = append(messages, ai("So."))
			},
			"one by one": func(t *rapid.T) {
				plan, _ := hold(pilot, "s", find.Draw(t, "documents")...)
				for _, i := range rapid.Permutation(identity(len(plan.Items))).Draw(t, "order") {
					send(1, nil, human("Of this alone:\n"+plan.RenderItem(i)))
				}
			},
			"some": func(t *rapid.T) {
				plan, _ := hold(pilot, "s", find.Draw(t, "documents")...)
				n := rapid.IntRange(1, len(plan.Items)).Draw(t, "some")
				text := ""
				for i := range n {
					text = plan.RenderItem(i) + "Seen.\n" + text
				}
				send(n, nil, human(text))
			},
			"in vain":        func(t *rapid.T) { hold(pilot, "s", find.Draw(t, "documents")...) },
			"something else": func(*rapid.T) { send(0, nil, human("Is it late?")) },
			"": func(t *rapid.T) {
				other.Begin("s", []framework.Message{{Role: conversation.User, Texts: []conversation.Text{{Value: "Well?"}}}})
				if st := pilot.Stats(); st.LiveRequests != live || st.Plans != live || st.Faults() != 0 || st.EventsUnknown != 0 {
					t.Errorf("%d prompts were sent: %+v", live, st)
				}
			},
		})
	})
}

// identity returns the numbers up to n.
func identity(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// checkTexts checks that every text was sent as it is, or with references for blocks of it.
func checkTexts(t tb, caller, sent []llms.MessageContent) {
	t.Helper()
	for i, m := range sent {
		want := textOf(caller[i])
		got := textOf(m)
		if got == want {
			continue
		}
		for name, d := range machines() {
			block := "<doc " + name + ">\n" + d.PageContent + "\n</doc>"
			note := "Please refer to [" + name + "] in the previous conversation."
			if n := strings.Count(got, block) + strings.Count(got, note); n != strings.Count(want, block) {
				t.Errorf("message %d shows %s %d times:\n%s", i, name, n, got)
			}
		}
		if _, question, ok := strings.Cut(want, "\n\nQuestion: "); !ok || !strings.HasSuffix(got, "\n\nQuestion: "+question) {
			t.Errorf("message %d ends otherwise:\n%s", i, got)
		}
	}
}

func BenchmarkWrap(b *testing.B) {
	for _, turns := range []int{1, 20} {
		b.Run(fmt.Sprintf("turns=%d", turns), func(b *testing.B) {
			pilot := newPilot(b, contextpilot.Config{})
			m := langchain.Wrap(pilot, silent{&recorder{}})
			var messages []llms.MessageContent
			for range turns - 1 {
				_, text := hold(pilot, "s", "a", "b", "c")
				messages = append(messages, human(text+"\n\nWhy?"))
				messages = append(messages, ai(generate(in("s"), b, m, messages)))
			}
			b.ReportAllocs()
			for b.Loop() {
				_, text := hold(pilot, "s", "a", "b", "d", "e")
				generate(in("s"), b, m, append(slices.Clip(messages), human(text+"\n\nWhy?")))
			}
		})
	}
}

// silent is a model that remembers nothing.
type silent struct{ *recorder }

func (silent) GenerateContent(context.Context, []llms.MessageContent, ...llms.CallOption) (*llms.ContentResponse, error) {
	return answer("Because.", nil), nil
}
