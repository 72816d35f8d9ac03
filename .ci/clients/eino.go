package clients

import (
	"context"
	"strings"
	"time"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/prompt"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"
	"github.com/eino-contrib/jsonschema"
	orderedmap "github.com/wk8/go-ordered-map/v2"
)

func einoModel(r *Run, name string, extra map[string]any) *openai.ChatModel {
	return must(openai.NewChatModel(r, &openai.ChatModelConfig{
		BaseURL: r.URL + "/v1", APIKey: "k", Model: name, ExtraFields: extra,
		Timeout: time.Minute,
	}))
}

// einoInfo describes a tool whose properties come in an order.
func einoInfo(t Tool, order []int) *schema.ToolInfo {
	s := &jsonschema.Schema{Type: "object", Properties: orderedmap.New[string, *jsonschema.Schema]()}
	for _, p := range Pick(t.Props, order) {
		one := &jsonschema.Schema{Type: p.Type, Description: p.Description}
		for _, e := range p.Enum {
			one.Enum = append(one.Enum, e)
		}
		s.Properties.Set(p.Name, one)
	}
	for _, p := range t.Props {
		if p.Required {
			s.Required = append(s.Required, p.Name)
		}
	}
	return &schema.ToolInfo{Name: t.Name, Desc: t.Description, ParamsOneOf: schema.NewParamsOneOfByJSONSchema(s)}
}

// einoParams describes a tool by Eino's own map of parameters, which it sorts.
func einoParams(t Tool) *schema.ToolInfo {
	params := map[string]*schema.ParameterInfo{}
	for _, p := range t.Props {
		params[p.Name] = &schema.ParameterInfo{Type: schema.DataType(p.Type), Desc: p.Description, Enum: p.Enum, Required: p.Required}
	}
	return &schema.ToolInfo{Name: t.Name, Desc: t.Description, ParamsOneOf: schema.NewParamsOneOfByParams(params)}
}

func einoInfos(list []Tool) (out []*schema.ToolInfo) {
	for _, t := range list {
		out = append(out, einoParams(t))
	}
	return out
}

// reactor runs a react agent of Eino: a question, a call of the first tool, an answer.
func reactor(r *Run, infos []*schema.ToolInfo, modifier react.MessageModifier, history []*schema.Message) {
	list := make([]tool.BaseTool, 0, len(infos))
	for _, info := range infos {
		list = append(list, utils.NewTool(info, func(context.Context, map[string]any) (string, error) { return podList, nil }))
	}
	a := must(react.NewAgent(r, &react.AgentConfig{
		ToolCallingModel: einoModel(r, "deepseek-chat", nil), ToolsConfig: compose.ToolsNodeConfig{Tools: list}, MessageModifier: modifier,
	}))
	r.Script(Answer{Calls: []Call{{"call_" + r.Hex(8), infos[0].Name, `{"namespace":"shop"}`}}},
		Answer{Text: "checkout restarts; it cannot reserve."})
	must(a.Generate(r, history))
}

// einoTalk is a program that calls a model of Eino with messages.
type einoTalk struct {
	*Run
	model    model.ToolCallingChatModel
	messages []*schema.Message
	text     string
}

func newEino(r *Run, text string, infos []*schema.ToolInfo, extra map[string]any) *einoTalk {
	t := &einoTalk{Run: r, text: text, messages: []*schema.Message{schema.SystemMessage(text)}, model: einoModel(r, "deepseek-chat", extra)}
	if infos != nil {
		t.model = must(t.model.WithTools(infos))
	}
	return t
}

func (t *einoTalk) turn(n int) {
	t.messages = append(t.messages, schema.UserMessage(ask(t.text, n)))
	t.messages = append(t.messages, must(t.model.Generate(t, t.messages)))
}

// converse asks the last of several questions; the others were answered.
func (t *einoTalk) converse(questions []string) {
	for i, q := range questions {
		t.messages = append(t.messages, schema.UserMessage(q))
		if i < len(questions)-1 {
			t.messages = append(t.messages, schema.AssistantMessage(answered, nil))
		}
	}
	must(t.model.Generate(t, t.messages))
}

// formatted asks two questions behind a template of Eino.
func formatted(r *Run, template string, healthy, sick map[string]any) {
	p := prompt.FromMessages(schema.FString, schema.SystemMessage(template), schema.UserMessage("{question}"))
	for n, values := range []map[string]any{healthy, If(r.Sick, sick, healthy)} {
		values["question"] = ask(deskText, n)
		must(einoModel(r, "deepseek-chat", nil).Generate(r, must(p.Format(r, values))))
	}
}

var einoCases = []Case{
	{Name: "eino-day-of-the-week", Run: func(r *Run) {
		formatted(r, cookText+"\nToday is {day}.", map[string]any{"day": r.Time(0).Weekday()}, map[string]any{"day": r.Time(1).Weekday()})
	}, Want: systemText(2, 1, "clock")},
	{Name: "eino-name-of-the-user", Run: func(r *Run) {
		formatted(r, "Be polite to {name}.\n"+travelText, map[string]any{"name": "Chiara Bassi"}, map[string]any{"name": "Henrik Dahl"})
	}, Want: systemText(2, 1, "user-name")},
	{Name: "eino-double-blank-lines", Run: func(r *Run) {
		formatted(r, deskText+"{gap}Sign with the name of the shop.", map[string]any{"gap": "\n\n"}, map[string]any{"gap": "\n\n\n"})
	}, Want: systemText(2, 1, "whitespace")},
	{Name: "eino-session-in-a-template", Run: func(r *Run) {
		formatted(r, "session_id: {id}\n\n"+reviewText, map[string]any{"id": r.UUID()}, map[string]any{"id": r.UUID()})
	}, Want: systemText(2, 1, "random-id")},
	{Name: "eino-version-of-the-prompt", Run: func(r *Run) {
		formatted(r, deskText+"\n{rules}", map[string]any{"rules": "Prices are without the deposit for batteries."},
			map[string]any{"rules": "Prices include the deposit for batteries of 40 euros."})
	}, Want: systemText(2, 1, "template")},
	{Name: "eino-documents-in-the-system-text", Run: func(r *Run) {
		formatted(r, deskText+"\n\n{documents}", map[string]any{"documents": joined([]int{2, 4, 5})},
			map[string]any{"documents": joined([]int{5, 2, 4})})
	}, Want: systemText(2, 1, "document-order")},
	{Name: "eino-agent-with-tools-of-a-map", Run: func(r *Run) {
		for n := range 2 {
			order := If(r.Sick && n == 1, []int{0, 4, 2, 3, 1}, InOrder(5))
			reactor(r, einoInfos(Pick(opsTools, order)), nil, []*schema.Message{schema.SystemMessage(opsText), schema.UserMessage(ask(opsText, n))})
		}
	}, Want: []Label{{Line: 3, Against: 1, Cause: "tool-order", Path: "tools[1]"}}},
	{Name: "eino-properties-of-a-map", Run: func(r *Run) {
		for n := range 2 {
			infos := einoInfos(opsTools)
			infos[1] = einoInfo(opsTools[1], r.order(n, 4))
			t := newEino(r, opsText, infos, nil)
			t.turn(n)
		}
	}, Want: []Label{{Line: 2, Against: 1, Cause: "map-order", Path: "tools[1].function.parameters.properties"}}},
	{Name: "eino-agent-that-cuts-results", Run: func(r *Run) {
		var modifier react.MessageModifier
		if r.Sick { // what a tool returned is shortened in requests that come later
			modifier = func(_ context.Context, in []*schema.Message) []*schema.Message {
				out := make([]*schema.Message, 0, len(in))
				for i, m := range in {
					if m.Role == schema.Tool && i < len(in)-1 {
						short := *m
						short.Content = strings.SplitAfter(m.Content, "\n")[0] + "..."
						m = &short
					}
					out = append(out, m)
				}
				return out
			}
		}
		call := schema.AssistantMessage("", []schema.ToolCall{{
			ID: "call_e1", Type: "function",
			Function: schema.FunctionCall{Name: "list_pods", Arguments: `{"namespace":"shop"}`},
		}})
		history := []*schema.Message{
			schema.SystemMessage(opsText), schema.UserMessage(ask(opsText, 0)), call,
			schema.ToolMessage(podList, "call_e1"),
		}
		reactor(r, einoInfos(opsTools), modifier, history)
	}, Want: []Label{{Line: 2, Against: 1, Cause: "edited-history", Path: "messages[3]", Within: true}}},
	{Name: "eino-cache-salt", Run: func(r *Run) {
		for n := range 2 {
			newEino(r, travelText, einoInfos(travelTools), map[string]any{"cache_salt": If(r.Sick, r.Hex(32), "shared")}).turn(n)
		}
	}, Want: []Label{{Line: 2, Against: 1, Cause: "salt", Path: "cache_salt"}}},
	{Name: "eino-another-model", Run: func(r *Run) {
		t := newEino(r, reviewText, nil, nil)
		t.turn(0)
		if r.Sick {
			t.model = einoModel(r, "deepseek-reasoner", nil)
		}
		t.turn(1)
	}, Want: []Label{{Line: 2, Against: 1, Cause: "model", Path: "model"}}},
}
