package eino

import (
	"encoding/json"
	"slices"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"

	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/framework"
)

// form is how Eino writes messages.
var form = framework.Form[*schema.Message]{
	Read:  read,
	Visit: visited,
	Add: func(msg *schema.Message, text string) *schema.Message {
		m := *msg
		switch {
		case len(m.UserInputMultiContent) > 0:
			m.UserInputMultiContent = append(slices.Clone(m.UserInputMultiContent), schema.MessageInputPart{
				Type: schema.ChatMessagePartTypeText, Text: text,
			})
		case len(m.MultiContent) > 0: // deprecated, and still read in place of Content
			part := schema.ChatMessagePart{Type: schema.ChatMessagePartTypeText, Text: text} //nolint:staticcheck // programs still use it
			m.MultiContent = append(slices.Clone(m.MultiContent), part)
		default:
			m.Content = framework.Behind(m.Content, text)
		}
		return &m
	},
	New: func(role conversation.Role, text string) *schema.Message {
		if role == conversation.System {
			return schema.SystemMessage(text)
		}
		return schema.UserMessage(text)
	},
}

// stabilised returns what is sent of a call. Tools that inner was given before are sent with the call, in the conversation's order.
func (c *chat) stabilised(name string, input []*schema.Message, opts []model.Option) ([]*schema.Message, []model.Option) {
	if c.stabiliser == nil {
		return input, opts
	}
	input, begins := framework.Stabilised(c.stabiliser, name, input, form)
	rules := c.stabiliser.Rules()
	tools := model.GetCommonOptions(&model.Options{Tools: c.bound}, opts...).Tools
	if len(tools) == 0 || !rules.Tools && !rules.Schemas {
		return input, opts
	}
	label := func(t *schema.ToolInfo) string { return t.Name }
	return input, append(slices.Clone(opts), model.WithTools(
		framework.StabilisedTools(c.stabiliser, name, begins, tools, label, withSchema)))
}

// withSchema returns a tool whose parameters are written in their order.
func withSchema(t *schema.ToolInfo, value func(any) any) *schema.ToolInfo {
	if t.ParamsOneOf == nil {
		return t
	}
	params, err := t.ToJSONSchema()
	if err != nil || params == nil {
		return t
	}
	raw, ok := value(params).(json.RawMessage)
	if !ok {
		return t
	}
	out := *t
	if params, err = parsed(params, raw); err != nil {
		return t
	}
	out.ParamsOneOf = schema.NewParamsOneOfByJSONSchema(params)
	return &out
}

// parsed reads JSON into a new value of the type of another one.
func parsed[T any](_ *T, raw []byte) (*T, error) {
	out := new(T)
	return out, json.Unmarshal(raw, out)
}
