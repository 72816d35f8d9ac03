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
	"github.com/ragpilot/ragpilot/engines/langchain"
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
			"end": func(*rapid.T) { pilot.EndSession(contextpilot.Scope{}, "s") },
		})
		if st := pilot.Stats(); st.Held != 0 || st.Faults() != 0 || st.EventsUnknown != 0 {
			t.Errorf("%+v", st)
		}
	})
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
