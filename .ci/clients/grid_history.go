package clients

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
)

// dialogue makes a conversation of n questions and answers, all unlike the others.
func (r *Run) dialogue(n int) (messages []chatMessage) {
	asked := map[string]bool{}
	for range n {
		q := r.question(shops[0], asked)
		d := documents[r.rand.IntN(len(documents))]
		messages = append(messages, openai.UserMessage(q), openai.AssistantMessage("Case "+r.Hex(6)+". "+d[:120+r.rand.IntN(60)]))
	}
	return messages
}

func messageText(m chatMessage) string {
	if m.OfUser != nil {
		return m.OfUser.Content.OfString.Value
	}
	return m.OfAssistant.Content.OfString.Value
}

// changes are what programs do to a history of ten messages; at is the first message that is another then, the system text included.
var changes = []struct {
	name string
	at   int
	do   func(m []chatMessage) []chatMessage
}{
	{"first-two-dropped", 1, func(m []chatMessage) []chatMessage { return m[2:] }},
	{"first-four-dropped", 1, func(m []chatMessage) []chatMessage { return m[4:] }},
	{"middle-dropped", 3, func(m []chatMessage) []chatMessage { return slices.Delete(m, 2, 6) }},
	{"one-dropped", 4, func(m []chatMessage) []chatMessage { return slices.Delete(m, 3, 4) }},
	{"summary-first", 1, func(m []chatMessage) []chatMessage {
		return append([]chatMessage{openai.UserMessage("Summary of the talk: the customer asked about a battery and a refund, both are " +
			"settled.")}, m[6:]...)
	}},
	{"summary-beside", 1, func(m []chatMessage) []chatMessage {
		return slices.Insert(m, 0, openai.AssistantMessage("Memory: the customer lives in Kassel and rides to work."))
	}},
	{"reminder-inserted", 5, func(m []chatMessage) []chatMessage {
		return slices.Insert(m, 4, openai.SystemMessage("Remember to be brief."))
	}},
	{"answer-cut", 2, func(m []chatMessage) []chatMessage {
		m[1] = openai.AssistantMessage(messageText(m[1])[:70] + " [...]")
		return m
	}},
	{"answer-emptied", 6, func(m []chatMessage) []chatMessage {
		m[5] = openai.AssistantMessage("(removed)")
		return m
	}},
	{"question-reworded", 3, func(m []chatMessage) []chatMessage {
		m[2] = openai.UserMessage("Put another way: " + strings.ToLower(messageText(m[2])))
		return m
	}},
	{"address-hidden", 1, func(m []chatMessage) []chatMessage {
		m[0] = openai.UserMessage(strings.Replace(messageText(m[0]), " ", " [redacted] ", 1))
		return m
	}},
	{"pairs-swapped", 5, func(m []chatMessage) []chatMessage {
		m[4], m[5], m[6], m[7] = m[6], m[7], m[4], m[5]
		return m
	}},
}

// GridHistory returns cases in which a conversation goes on, and its past is not what it was.
func GridHistory() (cases []Case) {
	for _, ch := range changes {
		for _, tools := range [][]Tool{nil, deskTools} {
			cases = append(cases, Case{Name: fmt.Sprintf("grid-edited-history-%s-%d", ch.name, len(tools)), Run: func(r *Run) {
				c := newChat(r, "qwen3-32b", deskText, tools)
				past := r.dialogue(5)
				askers[1].ask(r, cookText, "", []string{ask(cookText, 3)})
				c.add(past...)
				c.add(openai.UserMessage("And what does it cost to have that done in Ulm?"))
				c.send()
				past = c.params.Messages[1:]
				c.params.Messages = c.params.Messages[:1:1]
				c.add(If(r.Sick, ch.do, func(m []chatMessage) []chatMessage { return m })(slices.Clone(past))...)
				c.add(openai.UserMessage("Then book it, please."))
				c.send()
			}, Want: []Label{{Line: 3, Against: 2, Cause: "edited-history", Path: fmt.Sprintf("messages[%d]", ch.at), Within: true}}})
		}
	}
	return append(cases, documentCases()...)
}

// styles are how programs write documents.
var styles = map[string]func(n int) string{
	"tags":     func(n int) string { return "<doc>\n" + documents[n] + "\n</doc>" },
	"numbers":  func(n int) string { return fmt.Sprintf("[doc%d] %s", n, documents[n]) },
	"headings": func(n int) string { return "### Result\n" + documents[n] },
	"dashes":   func(n int) string { return "---\n" + documents[n] },
	"json":     func(n int) string { return fmt.Sprintf(`{"source": "kb/%d.md", "text": %q}`, n, documents[n]) },
	"plain":    func(n int) string { return documents[n] },
	"xml":      func(n int) string { return fmt.Sprintf("<passage id=\"%d\">%s</passage>", n, documents[n]) },
}

// documentCases have the same documents in another order, in the system text and in front of the question.
func documentCases() (cases []Case) {
	for i, style := range keys(styles) {
		for k, n := range []int{2, 3, 6} {
			a := askers[(i+k)%len(askers)]
			text := func(order []int) string {
				parts := make([]string, 0, len(order))
				for _, d := range order {
					parts = append(parts, styles[style](d))
				}
				return strings.Join(parts, "\n\n")
			}
			inSystem := k != 1
			path := a.system
			if !inSystem {
				path = fmt.Sprintf(a.question, a.offset())
			}
			cases = append(cases, Case{Name: fmt.Sprintf("grid-document-order-%s-%d-%s", style, n, a.name), Run: func(r *Run) {
				for line := range 2 {
					docs := text(If(r.Sick && line == 1, r.Shuffled(n, 0), InOrder(n)))
					if inSystem {
						a.ask(r, "Answer from these documents only.\n\n"+docs, "", []string{ask(deskText, line)})
					} else {
						a.ask(r, deskText, "", []string{"Context:\n\n" + docs + "\n\nQuestion: " + ask(deskText, line)})
					}
				}
			}, Want: []Label{{Line: 2, Against: 1, Cause: "document-order", Path: path}}})
		}
	}
	return cases
}
