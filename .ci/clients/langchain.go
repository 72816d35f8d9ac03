package clients

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/anthropic"
	"github.com/tmc/langchaingo/llms/openai"
	"github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/prompts"
	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/tools"
)

func langchainOpenAI(r *Run) llms.Model {
	return must(openai.New(openai.WithBaseURL(r.URL+"/v1"), openai.WithToken("k"), openai.WithModel("gpt-4o-mini")))
}

func langchainAnthropic(r *Run) llms.Model {
	return must(anthropic.New(anthropic.WithBaseURL(r.URL+"/v1"), anthropic.WithToken("k"), anthropic.WithModel("claude-sonnet-4-5")))
}

// talk is a program that calls a model of langchaingo with messages.
type talk struct {
	*Run
	model    llms.Model
	messages []llms.MessageContent
	options  []llms.CallOption
	text     string
}

func newTalk(r *Run, model llms.Model, text string) *talk {
	return &talk{Run: r, model: model, text: text, messages: []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeSystem, text)}}
}

func (t *talk) system(text string) { t.messages[0] = llms.TextParts(llms.ChatMessageTypeSystem, text) }

func (t *talk) tools(schemas ...llms.Tool) { t.options = []llms.CallOption{llms.WithTools(schemas)} }

func langchainTools(list []Tool, schema func(n int, t Tool) any) (out []llms.Tool) {
	for n, t := range list {
		out = append(out, llms.Tool{Type: "function", Function: &llms.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: schema(n, t),
		}})
	}
	return out
}

func sorted(_ int, t Tool) any { return t.Schema() }

func (t *talk) turn(n int) {
	t.messages = append(t.messages, llms.TextParts(llms.ChatMessageTypeHuman, ask(t.text, n)))
	out := must(t.model.GenerateContent(t, t.messages, t.options...))
	t.messages = append(t.messages, llms.TextParts(llms.ChatMessageTypeAI, out.Choices[0].Content))
}

// converse asks the last of several questions; the others were answered.
func (t *talk) converse(questions []string) {
	for i, q := range questions {
		t.messages = append(t.messages, llms.TextParts(llms.ChatMessageTypeHuman, q))
		if i < len(questions)-1 {
			t.messages = append(t.messages, llms.TextParts(llms.ChatMessageTypeAI, answered))
		}
	}
	must(t.model.GenerateContent(t, t.messages, t.options...))
}

func (t *talk) only(n int) {
	t.messages = t.messages[:1]
	t.turn(n)
}

// deskTool is a tool of an agent of langchaingo.
type deskTool struct{ Tool }

func (d deskTool) Name() string        { return d.Tool.Name }
func (d deskTool) Description() string { return d.Tool.Description }
func (d deskTool) Call(_ context.Context, input string) (string, error) {
	return "Nothing was found for " + input + " in " + d.Tool.Name + ".", nil
}

// functions runs a functions agent, which uses one tool and answers.
func functions(r *Run, order []int, question string) {
	list := make([]tools.Tool, 0, len(order))
	for _, t := range Pick(deskTools, order) {
		list = append(list, deskTool{t})
	}
	a := agents.NewOpenAIFunctionsAgent(langchainOpenAI(r), list, agents.NewOpenAIOption().WithSystemMessage(deskText))
	r.Script(Answer{Calls: []Call{{"call_" + r.Hex(8), "stock", `{"__arg1":"88-114"}`}}}, Answer{Text: "There is none left in Fulda."})
	must(chains.Run(r, agents.NewExecutor(a), question))
}

// rendered asks two questions behind a chat template of langchaingo with two values.
func rendered(r *Run, template string, healthy, sick map[string]any) {
	chat := prompts.NewChatPromptTemplate([]prompts.MessageFormatter{
		prompts.NewSystemMessagePromptTemplate(template, nil), prompts.NewHumanMessagePromptTemplate("{{.question}}", nil),
	})
	for n, values := range []map[string]any{healthy, If(r.Sick, sick, healthy)} {
		values["question"] = ask(deskText, n)
		var messages []llms.MessageContent
		for _, m := range must(chat.FormatMessages(values)) {
			messages = append(messages, llms.TextParts(m.GetType(), m.GetContent()))
		}
		must(langchainOpenAI(r).GenerateContent(r, messages))
	}
}

// stuffed answers from documents by the chain that puts them all into one message.
func stuffed(r *Run, question string, order ...int) {
	docs := make([]schema.Document, 0, len(order))
	for _, n := range order {
		docs = append(docs, schema.Document{PageContent: documents[n]})
	}
	must(chains.Call(r, chains.LoadStuffQA(langchainOpenAI(r)), map[string]any{"input_documents": docs, "question": question}))
}

var langchainCases = []Case{
	{Name: "langchaingo-date-in-a-template", Run: func(r *Run) {
		rendered(r, "It is {{.now}}.\n"+deskText, map[string]any{"now": r.Time(0).Format("02.01.2006 15:04")},
			map[string]any{"now": r.Time(1).Format("02.01.2006 15:04")})
	}, Want: systemText(2, 1, "clock")},
	{Name: "langchaingo-blank-lines-of-a-template", Run: func(r *Run) {
		rendered(r, opsText+"\n{{if .vip}}The service is one of the payment group.\n{{end}}\n{{range .notes}}- {{.}}\n{{end}}Be brief.",
			map[string]any{"notes": []string{"cart was moved yesterday"}, "vip": false},
			map[string]any{"notes": []string{"cart was moved yesterday\n"}, "vip": false})
	}, Want: systemText(2, 1, "whitespace")},
	{Name: "langchaingo-request-in-a-template", Run: func(r *Run) {
		rendered(r, travelText+"\nrequest={{.id}}", map[string]any{"id": r.Hex(16)}, map[string]any{"id": r.Hex(16)})
	}, Want: systemText(2, 1, "random-id")},
	{Name: "langchaingo-properties-of-a-map", Run: func(r *Run) {
		t := newTalk(r, langchainOpenAI(r), travelText)
		for n := range 2 {
			t.tools(langchainTools(travelTools, func(_ int, t Tool) any {
				s := map[string]any{"type": "object", "properties": t.RawProps(InOrder(len(t.Props)))}
				if t.Name == "search_trains" {
					s["properties"] = t.RawProps(r.order(n, 5))
				}
				return s
			})...)
			t.only(n)
		}
	}, Want: []Label{{Line: 2, Against: 1, Cause: "map-order", Path: "tools[0].function.parameters.properties"}}},
	{Name: "langchaingo-settings-of-a-map", Run: func(r *Run) {
		t := newTalk(r, langchainAnthropic(r), cookText)
		for n := range 2 {
			var b strings.Builder
			keys := Pick([]string{"portions", "ovens", "hobs", "kitchen", "season"}, r.order(n, 5))
			values := map[string]any{"portions": 80, "ovens": 2, "hobs": 4, "kitchen": "north", "season": "winter"}
			for _, k := range keys {
				b.WriteString(`, "` + k + `": ` + string(must(json.Marshal(values[k]))))
			}
			t.system(cookText + "\n\nConfiguration: {" + b.String()[2:] + "}")
			t.turn(n)
		}
	}, Want: []Label{{Line: 2, Against: 1, Cause: "map-order", Path: "system"}}},
	{Name: "langchaingo-agent-with-tools-of-a-map", Run: func(r *Run) {
		functions(r, InOrder(4), ask(deskText, 2))
		functions(r, If(r.Sick, []int{2, 0, 3, 1}, InOrder(4)), ask(deskText, 5))
	}, Want: []Label{{Line: 3, Against: 1, Cause: "tool-order", Path: "tools[0]"}}},
	{Name: "langchaingo-stuffed-documents", Run: func(r *Run) {
		stuffed(r, "How long is the battery covered?", 1, 0, 3)
		stuffed(r, "What does the code mean?", If(r.Sick, []int{3, 1, 0}, []int{1, 0, 3})...)
	}, Want: systemText(2, 1, "document-order")},
	{Name: "langchaingo-window-of-a-conversation", Run: func(r *Run) {
		history := memory.NewChatMessageHistory()
		check(history.AddUserMessage(r, "We are two adults and two children.")) // an empty history leaves a blank line behind
		check(history.AddAIMessage(r, "Good. Where do you begin, and when?"))
		var m schema.Memory = memory.NewConversationBuffer(memory.WithChatHistory(history))
		if r.Sick {
			m = memory.NewConversationWindowBuffer(3, memory.WithChatHistory(history))
		}
		c := chains.NewConversation(langchainOpenAI(r), m)
		for n := range 4 {
			must(chains.Run(r, &c, ask(travelText, n)))
		}
	}, Want: []Label{{Line: 4, Against: 3, Cause: "edited-history", Path: "messages[0]", Within: true}}},
	{Name: "langchaingo-anthropic-address-of-the-user", Run: func(r *Run) {
		t := newTalk(r, langchainAnthropic(r), reviewText)
		for n, who := range []string{"petra.hagen@pumps.example", "d.silva@pumps.example"} {
			t.system(reviewText + "\nYou work for " + If(r.Sick, who, "the department") + ".")
			t.only(n)
		}
	}, Want: []Label{{Line: 2, Against: 1, Cause: "user-name", Path: "system"}}},
	{Name: "langchaingo-anthropic-indented-template", Run: func(r *Run) {
		t := newTalk(r, langchainAnthropic(r), opsText)
		t.tools(langchainTools(opsTools, sorted)...)
		t.turn(0)
		t.system(If(r.Sick, strings.ReplaceAll(opsText, "\n", "\n\t"), opsText))
		t.turn(1)
	}, Want: []Label{{Line: 2, Against: 1, Cause: "whitespace", Path: "system"}}},
	{Name: "langchaingo-anthropic-a-tool-more", Run: func(r *Run) {
		t := newTalk(r, langchainAnthropic(r), opsText)
		t.tools(langchainTools(opsTools[1:4], sorted)...)
		t.turn(0)
		t.tools(langchainTools(If(r.Sick, opsTools[:4], opsTools[1:4]), sorted)...)
		t.turn(1)
	}, Want: []Label{{Line: 2, Against: 1, Cause: "tool-set", Path: "tools[0]"}}},
}
