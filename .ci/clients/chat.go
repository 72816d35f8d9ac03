package clients

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// chat is a program that uses the chat API of openai-go.
type chat struct {
	*Run
	client openai.Client
	params openai.ChatCompletionNewParams
	text   string
}

type chatMessage = openai.ChatCompletionMessageParamUnion

func newChat(r *Run, model, text string, tools []Tool) *chat {
	c := &chat{Run: r, text: text, client: openai.NewClient(option.WithBaseURL(r.URL+"/v1"), option.WithAPIKey("k"), option.WithMaxRetries(0))}
	c.params = openai.ChatCompletionNewParams{Model: model, Messages: []chatMessage{openai.SystemMessage(text)}}
	c.tools(tools)
	return c
}

func (c *chat) tools(tools []Tool) {
	c.params.Tools = nil
	for _, t := range tools {
		c.params.Tools = append(c.params.Tools, chatTool(t, t.Schema()))
	}
}

func chatTool(t Tool, schema map[string]any) openai.ChatCompletionToolUnionParam {
	return openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
		Name: t.Name, Description: openai.String(t.Description), Parameters: schema,
	})
}

func (c *chat) system(text string) { c.params.Messages[0] = openai.SystemMessage(text) }

func (c *chat) add(m ...chatMessage) { c.params.Messages = append(c.params.Messages, m...) }

// send asks with what stands there and adds the answer.
func (c *chat) send(opts ...option.RequestOption) {
	out := must(c.client.Chat.Completions.New(c, c.params, opts...))
	c.add(out.Choices[0].Message.ToParam())
}

// turn adds the n-th question and asks.
func (c *chat) turn(n int, opts ...option.RequestOption) {
	c.add(openai.UserMessage(ask(c.text, n)))
	c.send(opts...)
}

// used lets the model call a tool, and adds the result.
func (c *chat) used(call Call, result string) {
	c.Script(Answer{Calls: []Call{call}})
	c.send()
	c.add(openai.ToolMessage(result, call.ID))
}

// only asks the n-th question of a conversation that is otherwise new.
func (c *chat) only(n int, opts ...option.RequestOption) {
	c.params.Messages = c.params.Messages[:1]
	c.turn(n, opts...)
}

const podList = `NAME                      READY   STATUS             RESTARTS   AGE
checkout-7d9c5b6f4-2xk8p  1/1     Running            0          3d
checkout-7d9c5b6f4-9qwzt  0/1     CrashLoopBackOff   17         3d
checkout-7d9c5b6f4-lm5vd  1/1     Running            1          3d
cart-5f7b9d8c6-hh2rn      1/1     Running            0          9d
cart-5f7b9d8c6-x9p4k      1/1     Running            0          9d
mailer-0                  1/1     Running            0          21d`

const logLines = `level=info msg="listening" port=8080
level=warn msg="pool exhausted" waiting=41
level=error msg="cannot reserve" err="context deadline exceeded" order=99123
level=error msg="cannot reserve" err="context deadline exceeded" order=99127
level=fatal msg="too many failures, leaving"`

var systemText = func(line, against int, cause string) []Label {
	return []Label{{Line: line, Against: against, Cause: cause, Path: "messages[0].content"}}
}

var chatCases = []Case{
	{Name: "chat-clock-rfc3339", Run: func(r *Run) {
		c := newChat(r, "gpt-4.1", deskText, deskTools)
		newChat(r, "gpt-4.1", cookText, nil).turn(0)
		for n := range 3 {
			c.system(deskText + "\n\nCurrent time: " + If(r.Sick, r.Time(n), r.Time(0)).Format(time.RFC3339))
			c.turn(n)
		}
	}, Want: slices.Concat(systemText(3, 2, "clock"), systemText(4, 3, "clock"))},
	{Name: "chat-clock-developer-long-date", Run: func(r *Run) {
		c := newChat(r, "o4-mini", travelText, travelTools)
		for n := range 2 {
			now := If(r.Sick, r.Time(n), r.Time(0)).Format("Monday, January 2, 2006 3:04 PM")
			c.params.Messages[0] = openai.DeveloperMessage("It is " + now + ".\n\n" + travelText)
			c.only(n)
		}
	}, Want: systemText(2, 1, "clock")},
	{Name: "chat-clock-of-an-early-message", Run: func(r *Run) {
		c := newChat(r, "qwen3-32b", cookText, nil)
		c.add(openai.UserMessage(""))
		for n := range 3 {
			at := If(r.Sick, r.Time(0).Add(time.Duration(n)*41*time.Minute), r.Time(0)).Format("15:04:05")
			c.params.Messages[1] = openai.UserMessage("[now " + at + "] The kitchen has opened. Today there are 83 children.")
			c.turn(n)
		}
	}, Want: []Label{
		{Line: 2, Against: 1, Cause: "clock", Path: "messages[1].content"}, {Line: 3, Against: 2, Cause: "clock", Path: "messages[1].content"},
	}},
	{Name: "chat-uuid-in-a-tool-description", Run: func(r *Run) {
		c := newChat(r, "gpt-4.1-mini", deskText, deskTools)
		for n := range 2 {
			t := slices.Clone(deskTools)
			t[1].Description += " Session " + If(r.Sick, r.UUID(), "is kept") + "."
			c.tools(t)
			c.only(n)
		}
	}, Want: []Label{{Line: 2, Against: 1, Cause: "random-id", Path: "tools[1].function.description"}}},
	{Name: "chat-request-id-header", Run: func(r *Run) {
		newChat(r, "gpt-4.1-mini", opsText, opsTools).turn(3)
		c := newChat(r, "gpt-4.1-mini", reviewText, nil)
		for n := range 2 {
			c.system("X-Request-Id: " + If(r.Sick, "req_"+r.Hex(24), "req_none") + "\n" + reviewText)
			c.only(n)
		}
	}, Want: systemText(3, 2, "random-id")},
	{Name: "chat-tool-call-ids-made-anew", Run: func(r *Run) {
		c := newChat(r, "llama-3.3-70b", opsText, opsTools)
		c.add(openai.UserMessage(ask(opsText, 0)))
		c.used(Call{"call_" + r.NanoID(), "list_pods", `{"namespace":"shop"}`}, podList)
		c.used(Call{"call_" + r.NanoID(), "read_logs", `{"pod":"checkout-7d9c5b6f4-9qwzt","lines":5}`}, logLines)
		if r.Sick { // the history is loaded from a store that keeps no identifiers
			for i := range c.params.Messages {
				if a := c.params.Messages[i].OfAssistant; a != nil && len(a.ToolCalls) > 0 {
					id := "call_" + r.NanoID()
					a.ToolCalls[0].OfFunction.ID, c.params.Messages[i+1].OfTool.ToolCallID = id, id
				}
			}
		}
		c.send()
	}, Want: []Label{{Line: 3, Against: 2, Cause: "random-id", Path: "messages[2].tool_calls[0].id"}}},
	{Name: "chat-properties-of-a-map", Run: func(r *Run) {
		c := newChat(r, "gpt-4.1", deskText, nil)
		for n := range 2 {
			c.tools(deskTools)
			t := deskTools[2]
			c.params.Tools[2] = chatTool(t, t.RawSchema(r.order(n, 5)))
			c.only(n)
		}
	}, Want: []Label{{Line: 2, Against: 1, Cause: "map-order", Path: "tools[2].function.parameters.properties"}}},
	{Name: "chat-required-of-a-map", Run: func(r *Run) {
		c := newChat(r, "gpt-4.1", deskText, deskTools)
		for n := range 3 {
			schema := deskTools[3].Schema()
			schema["required"] = Pick([]string{"amount", "order", "reason"}, If(n > 0 && r.Sick, []int{2, 0, 1}, InOrder(3)))
			c.params.Tools[3] = chatTool(deskTools[3], schema)
			c.turn(n)
		}
	}, Want: []Label{{Line: 2, Against: 1, Cause: "map-order", Path: "tools[3].function.parameters.required"}}},
	{Name: "chat-arguments-written-again", Run: func(r *Run) {
		c := newChat(r, "llama-3.3-70b", opsText, opsTools)
		c.add(openai.UserMessage(ask(opsText, 0)))
		c.used(Call{"call_1", "read_logs", `{"pod":"checkout-7d9c5b6f4-9qwzt","lines":5,"previous":true,"container":"app"}`}, logLines)
		c.send()
		if r.Sick {
			call := c.params.Messages[2].OfAssistant.ToolCalls[0].OfFunction
			call.Function.Arguments = `{"container":"app","lines":5,"pod":"checkout-7d9c5b6f4-9qwzt","previous":true}`
		}
		c.turn(2)
	}, Want: []Label{{Line: 3, Against: 2, Cause: "map-order", Path: "messages[2].tool_calls[0].function.arguments"}}},
	{Name: "chat-tools-of-a-map", Run: func(r *Run) {
		c := newChat(r, "gpt-4.1", opsText, opsTools)
		c.turn(0)
		newChat(r, "gpt-4.1", deskText, deskTools).turn(0)
		c.tools(Pick(opsTools, If(r.Sick, []int{0, 3, 1, 4, 2}, InOrder(5))))
		c.turn(1)
		c.turn(2)
	}, Want: []Label{{Line: 3, Against: 1, Cause: "tool-order", Path: "tools[1]"}}},
	{Name: "chat-a-tool-more", Run: func(r *Run) {
		c := newChat(r, "gpt-4.1", opsText, opsTools[:3])
		c.turn(0)
		if r.Sick { // restarting is allowed from now on
			c.tools([]Tool{opsTools[0], opsTools[3], opsTools[1], opsTools[2]})
		}
		c.turn(1)
	}, Want: []Label{{Line: 2, Against: 1, Cause: "tool-set", Path: "tools[1]"}}},
	{Name: "chat-a-tool-described-anew", Run: func(r *Run) {
		c := newChat(r, "gpt-4.1", travelText, travelTools)
		c.turn(0)
		if r.Sick {
			t := slices.Clone(travelTools)
			t[1].Description = "Finds places to sleep. Use it only after the trains are settled."
			c.tools(t)
		}
		c.turn(1)
	}, Want: []Label{{Line: 2, Against: 1, Cause: "tool-set", Path: "tools[1]"}}},
	{Name: "chat-sliding-window", Run: func(r *Run) {
		c := newChat(r, "mistral-small", travelText, nil)
		for n := range 5 {
			if m := c.params.Messages; r.Sick && len(m) > 7 {
				c.params.Messages = append(m[:1:1], m[3:]...)
			}
			c.turn(n)
		}
	}, Want: []Label{{Line: 5, Against: 4, Cause: "edited-history", Path: "messages[1]", Within: true}}},
	{Name: "chat-tool-result-cut-later", Run: func(r *Run) {
		c := newChat(r, "gpt-4.1", opsText, opsTools)
		c.add(openai.UserMessage(ask(opsText, 2)))
		c.used(Call{"call_a1", "list_pods", `{"namespace":"shop"}`}, podList)
		c.used(Call{"call_a2", "read_logs", `{"pod":"mailer-0"}`}, logLines)
		if r.Sick { // old results are cut
			c.params.Messages[3] = openai.ToolMessage(podList[:120]+"\n[cut: 331 characters]", "call_a1")
		}
		c.send()
	}, Want: []Label{{Line: 3, Against: 2, Cause: "edited-history", Path: "messages[3]", Within: true}}},
	{Name: "chat-documents-in-the-system-text", Run: func(r *Run) {
		c := newChat(r, "gpt-4.1", deskText, nil)
		for n := range 2 {
			c.system(deskText + "\n\nWhat we know:\n\n" + joined(If(r.Sick && n == 1, []int{4, 0, 2, 1}, []int{0, 1, 2, 4})))
			c.only(n)
		}
	}, Want: systemText(2, 1, "document-order")},
	{Name: "chat-counter-of-turns", Run: func(r *Run) {
		c := newChat(r, "gpt-4.1", reviewText, nil)
		for n := range 2 {
			c.system(fmt.Sprintf("%s\n\nTurn %d of this conversation.", reviewText, If(r.Sick, n+1, 1)))
			c.turn(n)
		}
	}, Want: systemText(2, 1, "counter")},
	{Name: "chat-name-of-the-user", Run: func(r *Run) {
		c := newChat(r, "gpt-4.1-mini", deskText, deskTools)
		for n, name := range []string{"Annika Vogt", "Tomasz Zielinski"} {
			c.system("You are talking to " + If(r.Sick, name, "a customer") + ".\n" + deskText)
			c.only(n)
		}
	}, Want: systemText(2, 1, "user-name")},
	{Name: "chat-a-sentence-of-the-template", Run: func(r *Run) {
		c := newChat(r, "gpt-4.1", cookText, nil)
		newChat(r, "gpt-4.1", travelText, nil).turn(1)
		c.only(0)
		if r.Sick {
			c.system(strings.Replace(cookText, "Mark what can be done the day before.", "Say in minutes how long each step takes.", 1))
		}
		c.only(1)
		c.only(2)
	}, Want: systemText(3, 2, "template")},
}
