package clients

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/cloudwego/eino/schema"
	"github.com/openai/openai-go/v3"
)

// sentence is a few words that no other call returns.
func (r *Run) sentence() string {
	return fmt.Sprintf("The %s of %s is %s %d.", nameless[r.rand.IntN(len(nameless))], nouns[r.rand.IntN(len(nouns))],
		verbs[r.rand.IntN(len(verbs))], r.rand.IntN(100000))
}

func (r *Run) sentences(n int) string {
	s := make([]string, n)
	for i := range s {
		s[i] = r.sentence()
	}
	return strings.Join(s, " ")
}

const classifyText = `You sort messages of customers into one of these classes: delivery, defect, invoice, praise, other.
A message about a late parcel is "delivery" even if the customer is angry. A message about a wrong amount is "invoice".
Answer with the class and nothing else. If a message fits two classes, take the one that needs an answer sooner.`

// classify asks about one item at a time, behind examples that stay, in a frame that stays.
func classify(r *Run) {
	examples := []chatMessage{
		openai.UserMessage("Message: My parcel is five days late!"), openai.AssistantMessage("delivery"),
		openai.UserMessage("Message: You charged me twice."), openai.AssistantMessage("invoice"),
	}
	c := newChat(r, "gpt-4.1-nano", classifyText, nil)
	for range 60 {
		c.params.Messages = append(c.params.Messages[:1:1], examples...)
		c.add(openai.UserMessage("Message: " + r.sentences(1+r.rand.IntN(4)) + "\n\nClass:"))
		c.send()
	}
}

// forms asks about forms: name, number, day and text are other ones in each, and stand in the first message.
func forms(r *Run) {
	c := newClaude(r, "claude-haiku-4-5", deskText, deskTools)
	first := strings.Fields("Anna Bert Carla Deniz Emil Farida Georg Hanna Igor Jana")
	for n := range 60 {
		c.params.Messages = nil
		c.user(anthropic.NewTextBlock(fmt.Sprintf("Name: %s\nOrder: B-%d\nDate: %s\nTicket: %s\n\n%s", first[r.rand.IntN(len(first))],
			20000+r.rand.IntN(9999),
			r.Time(n).Format("2006-01-02 15:04"), r.UUID(), r.sentences(2))))
		c.send()
	}
}

const titleText = `Write a title of at most six words for a conversation. Use the language of the user. No quotes, no full stop at the end.
If the conversation is about several things, name the one that was asked about last.`

// titles asks for titles of conversations that another program has, in between.
func titles(r *Run) {
	d := newDialog(r, "gpt-5", deskText, deskTools)
	title := newDialog(r, "gpt-5-nano", titleText, nil)
	for range 30 {
		d.items = nil
		var transcript strings.Builder
		for range 1 + r.rand.IntN(3) {
			q := r.sentences(2)
			transcript.WriteString("USER: " + q + "\nASSISTANT: " + answered + "\n")
			d.items = append(d.items, said(q))
			d.send()
		}
		title.items = nil
		title.items = append(title.items, said("Conversation:\n"+transcript.String()))
		title.send()
	}
}

// branches goes back in a conversation and asks something else, or asks the last question in other words.
func branches(r *Run) {
	for range 5 {
		c := newChat(r, "llama-3.3-70b", shops[r.rand.IntN(len(shops))].text, nil)
		for range 25 {
			if n := len(c.params.Messages); n > 4 && r.rand.IntN(3) == 0 {
				c.params.Messages = slices.Clip(c.params.Messages[:1+2*r.rand.IntN(n/2)])
			}
			c.add(openai.UserMessage(r.sentences(3)))
			c.send()
		}
	}
}

// code reads files by a tool, changes them, and reads them again: the later result is another one, and new.
func code(r *Run) {
	tools := []Tool{
		{"read_file", "Reads a file of the repository.", []Prop{{Name: "path", Type: "string", Description: "The file.", Required: true}}},
		{"write_file", "Writes a file.", []Prop{
			{Name: "path", Type: "string", Description: "The file."},
			{Name: "text", Type: "string", Description: "The text."},
		}},
	}
	for range 4 {
		t := newEino(r, "You change programs. Read before you write. Keep changes small, and run the tests.", einoInfos(tools), nil)
		file := strings.Split(r.sentences(20), ". ")
		t.messages = append(t.messages, schema.UserMessage("Rename what is called "+nouns[r.rand.IntN(len(nouns))]+"."))
		for range 14 {
			id := "call_" + r.Hex(10)
			r.Script(Answer{Calls: []Call{{id, "read_file", `{"path":"main.go"}`}}})
			t.messages = append(t.messages, must(t.model.Generate(r, t.messages)))
			file[r.rand.IntN(len(file))] = r.sentence()
			t.messages = append(t.messages, schema.ToolMessage(strings.Join(file, "\n"), id))
		}
	}
}

// scratch is an agent that keeps what it did in one message, which grows.
func scratch(r *Run) {
	for range 5 {
		c := newChat(r, "mistral-small", opsText+"\nWrite Thought, Action and Observation.", nil)
		pad := "Question: " + r.sentence() + "\n"
		for range 14 {
			c.params.Messages = c.params.Messages[:1]
			c.add(openai.UserMessage(pad))
			c.send()
			pad += "Thought: " + r.sentence() + "\nAction: list\nObservation: " + r.sentences(3) + "\n"
		}
	}
}

// retrieved asks with other documents each time, in front of the question.
func retrieved(r *Run) {
	for range 60 {
		docs := make([]string, 0, 3)
		for range 3 {
			docs = append(docs, "<doc>"+r.sentences(6)+"</doc>")
		}
		askers[3].ask(r, deskText, "Finds entries.", []string{"Context:\n\n" + strings.Join(docs, "\n\n") + "\n\nQuestion: " + r.sentence()})
	}
}

// family has five agents with the same tools and texts of their own.
func family(r *Run) {
	roles := []string{"reviewer", "planner", "tester", "writer", "archivist"}
	agents := make([]*claude, 0, len(roles))
	for i, role := range roles {
		text := fmt.Sprintf("%s is your role. %s", strings.ToUpper(role[:1])+role[1:], shops[i].text)
		agents = append(agents, newClaude(r, "claude-sonnet-4-5", text, travelTools))
	}
	for range 100 {
		a := agents[r.rand.IntN(len(agents))]
		if len(a.params.Messages) > 12 {
			a.params.Messages = nil
		}
		a.user(anthropic.NewTextBlock(r.sentences(2)))
		a.send()
	}
}

// moreStable are programs of other kinds than mixed conversations.
var moreStable = []Program{
	{"stable-classify", classify},
	{"stable-forms", forms},
	{"stable-titles", titles},
	{"stable-branches", branches},
	{"stable-code", code},
	{"stable-scratch", scratch},
	{"stable-retrieved", retrieved},
	{"stable-family", family},
}
