package adk

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"google.golang.org/adk/model"
	"google.golang.org/genai"

	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/stabilise"
)

// stabilised returns what is sent of a request, which is not changed. Gemini takes a system instruction in front of the contents only.
func stabilised(s *stabilise.Stabiliser, name string, req *model.LLMRequest) *model.LLMRequest {
	if s == nil || !s.Rules().Any() {
		return req
	}
	head := head(req)
	all, begins := framework.Stabilised(s, name, contents(req), framework.Form[*genai.Content]{
		Read:  func(all []*genai.Content) []framework.Message { return readContents(all, head) },
		Visit: visitedContent,
		Add: func(c *genai.Content, text string) *genai.Content {
			content := *c
			content.Parts = append(slices.Clone(c.Parts), genai.NewPartFromText(text))
			return &content
		},
		New: func(_ conversation.Role, text string) *genai.Content {
			return genai.NewContentFromText(text, genai.RoleUser)
		},
		Clean: func(c *genai.Content) *genai.Content {
			content := *c
			content.Parts = slices.DeleteFunc(slices.Clone(c.Parts), func(p *genai.Part) bool { return p != nil && reflect.ValueOf(*p).IsZero() })
			return &content
		},
		NoSystem: true, KeepEmpty: true,
	})
	out := *req
	out.Contents = all[head:]
	if req.Config == nil {
		return &out
	}
	config := *req.Config
	if head > 0 {
		if config.SystemInstruction = all[0]; len(all[0].Parts) == 0 {
			config.SystemInstruction = nil
		}
	}
	config.Tools = slices.Clone(config.Tools)
	for i, tool := range config.Tools {
		if tool == nil || len(tool.FunctionDeclarations) == 0 {
			continue
		}
		t := *tool
		label := func(f *genai.FunctionDeclaration) string { return f.Name }
		t.FunctionDeclarations = framework.StabilisedTools(s, of(name, i), begins, t.FunctionDeclarations, label, withSchema)
		config.Tools[i] = &t
	}
	out.Config = &config
	return &out
}

// of names the functions of a tool of a conversation: each tool has an order of its own.
func of(name string, tool int) string {
	if name == "" || tool == 0 {
		return name
	}
	return fmt.Sprintf("%s\x00%d", name, tool)
}

// withSchema returns a function whose schemas are written in their order.
func withSchema(f *genai.FunctionDeclaration, value func(any) any) *genai.FunctionDeclaration {
	out := *f
	out.ParametersJsonSchema, out.ResponseJsonSchema = value(f.ParametersJsonSchema), value(f.ResponseJsonSchema)
	out.Parameters, out.Response = sorted(f.Parameters), sorted(f.Response)
	return &out
}

// sorted returns a schema whose required lists are sorted. Its members are written in one order as it is.
func sorted(s *genai.Schema) *genai.Schema {
	if s == nil {
		return nil
	}
	out := *s
	out.Required = slices.Clone(s.Required)
	slices.Sort(out.Required)
	out.Items, out.AnyOf, out.Properties = sorted(s.Items), slices.Clone(s.AnyOf), maps.Clone(s.Properties)
	for i := range out.AnyOf {
		out.AnyOf[i] = sorted(out.AnyOf[i])
	}
	for name, p := range out.Properties {
		out.Properties[name] = sorted(p)
	}
	return &out
}
