package clients

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
)

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// asker is a program of a client that sends one request with a system text, a description of its first tool (none if it is empty), and
// questions of which all but the last were answered.
type asker struct {
	name                string
	system, description string // paths
	question            string // path of the n-th question
	ask                 func(r *Run, system, description string, questions []string)
}

const answered = "That can be done. I have made a note of it."

func described(tools []Tool, description string) []Tool {
	if description == "" {
		return nil
	}
	t := slices.Clone(tools)
	t[0].Description = description
	return t
}

var askers = []asker{
	{
		"chat", "messages[0].content", "tools[0].function.description", "messages[%d].content",
		func(r *Run, system, description string, questions []string) {
			c := newChat(r, "gpt-4.1", system, described(opsTools, description))
			for i, q := range questions {
				c.add(openai.UserMessage(q))
				if i < len(questions)-1 {
					c.add(openai.AssistantMessage(answered))
				}
			}
			c.send()
		},
	},
	{"responses", "instructions", "tools[0].description", "input[%d].content", func(r *Run, system, description string, questions []string) {
		d := newDialog(r, "gpt-5", system, described(deskTools, description))
		for i, q := range questions {
			d.items = append(d.items, said(q))
			if i < len(questions)-1 {
				d.items = append(d.items, spoken(answered))
			}
		}
		d.send()
	}},
	{
		"anthropic", "system[0].text", "tools[0].description", "messages[%d].content[0].text",
		func(r *Run, system, description string, questions []string) {
			c := newClaude(r, "claude-sonnet-4-5", system, described(travelTools, description))
			for i, q := range questions {
				c.user(anthropic.NewTextBlock(q))
				if i < len(questions)-1 {
					c.add(anthropic.NewAssistantMessage(anthropic.NewTextBlock(answered)))
				}
			}
			c.send()
		},
	},
	{
		"langchaingo", "system", "tools[0].description", "messages[%d].content[0].text",
		func(r *Run, system, description string, questions []string) {
			t := newTalk(r, langchainAnthropic(r), system)
			if description != "" {
				t.tools(langchainTools(described(opsTools, description), sorted)...)
			}
			t.converse(questions)
		},
	},
	{
		"eino", "messages[0].content", "tools[0].function.description", "messages[%d].content",
		func(r *Run, system, description string, questions []string) {
			t := newEino(r, system, einoInfos(described(deskTools, description)), nil)
			t.converse(questions)
		},
	},
	{
		"adk", "systemInstruction.parts[0].text", "tools[0].functionDeclarations[0].description", "contents[%d].parts[0].text",
		func(r *Run, system, description string, questions []string) {
			w := newWorker(r, "", described(travelTools, description))
			w.instruct(system)
			w.converse(questions)
		},
	},
}

// offset is the index of the first question among the messages.
func (a asker) offset() int {
	if strings.HasPrefix(a.system, "messages[0]") {
		return 1
	}
	return 0
}

// places puts a value into a prompt, and says at which path it stands.
var places = []struct {
	name string
	put  func(a asker, r *Run, v string, n int) string
}{
	{"first", func(a asker, r *Run, v string, n int) string {
		a.ask(r, v+"\n"+travelText, "", []string{ask(travelText, n)})
		return a.system
	}},
	{"middle", func(a asker, r *Run, v string, n int) string {
		a.ask(r, strings.Replace(opsText, "\n\n", "\n\n("+v+")\n\n", 1), "Lists what runs.", []string{ask(opsText, n)})
		return a.system
	}},
	{"last", func(a asker, r *Run, v string, n int) string {
		a.ask(r, cookText+"\n\nContext: "+v, "", []string{ask(cookText, n)})
		return a.system
	}},
	{"description", func(a asker, r *Run, v string, n int) string {
		a.ask(r, reviewText, "Looks up what was agreed with a supplier. "+v+". Returns at most five entries.", []string{ask(reviewText, n)})
		return a.description
	}},
	{"history", func(a asker, r *Run, v string, n int) string {
		questions := []string{
			"<info>" + v + "</info>\nI run a shop for used bikes, and I need help with my customers.", ask(deskText, 1),
			ask(deskText, 2),
		}
		a.ask(r, deskText, "", questions[:n+2])
		return fmt.Sprintf(a.question, a.offset())
	}},
}

// Grid returns many small cases: each value in three places by three clients, each edit by two clients.
func Grid() (cases []Case) {
	all := slices.Concat(clocks, identifiers, counters, names)
	for i, v := range all {
		for k := range 3 {
			a, p := askers[(i+k*5+k)%len(askers)], places[(i*2+k)%len(places)]
			probe := ""
			program := func(r *Run) {
				fixed := v.at(r, 0)
				probe = p.put(a, r, fixed, 0)
				askers[0].ask(r, "Translate what the user says into Norwegian. Keep names.", "", []string{"Where is the harbour?"})
				p.put(a, r, If(r.Sick, v.at(r, 1), fixed), 1)
			}
			cases = append(cases, Case{
				Name: fmt.Sprintf("grid-%s-%s-%s-%s", v.cause, v.name, p.name, a.name), Run: program,
				Labels: func() []Label { return []Label{{Line: 3, Against: 1, Cause: v.cause, Path: probe}} },
			})
		}
	}
	for i, e := range edits {
		for k := range 2 {
			a, text := askers[(i+k*3)%len(askers)], []string{deskText, opsText, travelText, reviewText}[(i+k)%4]
			cases = append(cases, Case{Name: fmt.Sprintf("grid-%s-%s-%s", e.cause, e.name, a.name), Run: func(r *Run) {
				a.ask(r, text, "", []string{ask(text, 0)})
				askers[2].ask(r, cookText, "", []string{ask(cookText, 0)})
				a.ask(r, If(r.Sick, e.change(text), text), "", []string{ask(text, 1)})
			}, Want: []Label{{Line: 3, Against: 1, Cause: e.cause, Path: a.system}}})
		}
	}
	return cases
}
