package clients

import (
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

// claude is a program that uses anthropic-sdk-go.
type claude struct {
	*Run
	client anthropic.Client
	params anthropic.MessageNewParams
	text   string
}

func newClaude(r *Run, model, text string, tools []Tool) *claude {
	c := &claude{Run: r, text: text, client: anthropic.NewClient(option.WithBaseURL(r.URL), option.WithAPIKey("k"), option.WithMaxRetries(0))}
	c.params = anthropic.MessageNewParams{Model: model, MaxTokens: 1024}
	c.system(text)
	c.tools(tools)
	return c
}

// system sets the blocks of the system text.
func (c *claude) system(blocks ...string) {
	c.params.System = nil
	for _, b := range blocks {
		c.params.System = append(c.params.System, anthropic.TextBlockParam{Text: b})
	}
}

func (c *claude) tools(tools []Tool) {
	c.params.Tools = nil
	for _, t := range tools {
		schema := t.Schema()
		c.params.Tools = append(c.params.Tools, claudeTool(t, schema["properties"]))
	}
}

func claudeTool(t Tool, properties any) anthropic.ToolUnionParam {
	required, _ := t.Schema()["required"].([]string)
	u := anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{Properties: properties, Required: required}, t.Name)
	u.OfTool.Description = anthropic.String(t.Description)
	return u
}

func (c *claude) add(m ...anthropic.MessageParam) {
	c.params.Messages = append(c.params.Messages, m...)
}

func (c *claude) user(blocks ...anthropic.ContentBlockParamUnion) {
	c.add(anthropic.NewUserMessage(blocks...))
}

func (c *claude) send() { c.add(must(c.client.Messages.New(c, c.params)).ToParam()) }

func (c *claude) turn(n int) {
	c.user(anthropic.NewTextBlock(ask(c.text, n)))
	c.send()
}

func (c *claude) only(n int) {
	c.params.Messages = nil
	c.turn(n)
}

// used lets the model call tools, and adds the results.
func (c *claude) used(result string, calls ...Call) {
	c.Script(Answer{Text: "I look that up.", Calls: calls})
	c.send()
	blocks := make([]anthropic.ContentBlockParamUnion, 0, len(calls))
	for _, call := range calls {
		blocks = append(blocks, anthropic.NewToolResultBlock(call.ID, result, false))
	}
	c.user(blocks...)
}

// input replaces the input of the first call in a message.
func (c *claude) input(message, block int, input string) {
	c.params.Messages[message].Content[block].OfToolUse.Input = json.RawMessage(input)
}

var anthropicCases = []Case{
	{Name: "anthropic-clock-in-the-second-block", Run: func(r *Run) {
		c := newClaude(r, "claude-sonnet-4-5", opsText, opsTools)
		for n := range 2 {
			c.system(opsText, "The time is "+If(r.Sick, r.Time(n), r.Time(0)).String()+".")
			c.turn(n)
		}
	}, Want: []Label{{Line: 2, Against: 1, Cause: "clock", Path: "system[1].text"}}},
	{Name: "anthropic-ulid-of-the-trace", Run: func(r *Run) {
		newClaude(r, "claude-sonnet-4-5", cookText, nil).turn(0)
		c := newClaude(r, "claude-sonnet-4-5", reviewText, nil)
		id := r.ULID()
		c.system("trace: " + id + "\n" + reviewText)
		c.only(0)
		c.system("trace: " + If(r.Sick, r.ULID(), id) + "\n" + reviewText)
		c.only(1)
		c.only(2)
	}, Want: []Label{{Line: 3, Against: 2, Cause: "random-id", Path: "system[0].text"}}},
	{Name: "anthropic-input-written-again", Run: func(r *Run) {
		c := newClaude(r, "claude-sonnet-4-5", deskText, deskTools)
		c.user(anthropic.NewTextBlock(ask(deskText, 4)))
		c.used("Booked for 14:30.", Call{"toolu_01", "book_workshop", `{"shop":"Ulm","day":"2027-03-19","work":"inspection","loan_bike":true}`})
		c.send()
		c.input(1, 1, If(r.Sick, `{"work":"inspection","shop":"Ulm","loan_bike":true,"day":"2027-03-19"}`,
			`{"shop":"Ulm","day":"2027-03-19","work":"inspection","loan_bike":true}`))
		c.turn(5)
	}, Want: []Label{{Line: 3, Against: 2, Cause: "map-order", Path: "messages[1].content[1].input"}}},
	{Name: "anthropic-identifiers-made-anew", Run: func(r *Run) {
		c := newClaude(r, "claude-opus-4-1", opsText, opsTools)
		c.user(anthropic.NewTextBlock(ask(opsText, 0)))
		c.used(podList, Call{"toolu_" + r.Hex(24), "list_pods", `{"namespace":"shop"}`})
		c.used(logLines, Call{"toolu_" + r.Hex(24), "read_logs", `{"pod":"checkout-7d9c5b6f4-9qwzt"}`})
		if r.Sick {
			for _, m := range []int{1, 3} {
				id := "toolu_" + r.Hex(24)
				c.params.Messages[m].Content[1].OfToolUse.ID = id
				c.params.Messages[m+1].Content[0].OfToolResult.ToolUseID = id
			}
		}
		c.send()
	}, Want: []Label{{Line: 3, Against: 2, Cause: "random-id", Path: "messages[1].content[1].id"}}},
	{Name: "anthropic-tools-of-a-map", Run: func(r *Run) {
		c := newClaude(r, "claude-sonnet-4-5", opsText, opsTools)
		c.only(0)
		c.tools(Pick(opsTools, r.order(1, 5)))
		c.only(1)
	}, Want: []Label{{Line: 2, Against: 1, Cause: "tool-order", Path: "tools[0]"}}},
	{Name: "anthropic-properties-of-a-map", Run: func(r *Run) {
		c := newClaude(r, "claude-sonnet-4-5", travelText, travelTools)
		for n := range 2 {
			c.params.Tools[1] = claudeTool(travelTools[1], travelTools[1].RawProps(r.order(n, 4)))
			c.only(n)
		}
	}, Want: []Label{{Line: 2, Against: 1, Cause: "map-order", Path: "tools[1].input_schema.properties"}}},
	{Name: "anthropic-history-summarised", Run: func(r *Run) {
		c := newClaude(r, "claude-haiku-4-5", travelText, nil)
		for n := range 4 {
			c.turn(n)
		}
		if r.Sick {
			c.params.Messages = append([]anthropic.MessageParam{
				anthropic.NewUserMessage(anthropic.NewTextBlock("Summary so far: two adults and two children, Aarhus to Porto, night train from " +
					"Basel, hotel in Turin.")),
				anthropic.NewAssistantMessage(anthropic.NewTextBlock("Understood.")),
			}, c.params.Messages[6:]...)
		}
		c.turn(4)
	}, Want: []Label{{Line: 5, Against: 4, Cause: "edited-history", Path: "messages[0]", Within: true}}},
	{Name: "anthropic-documents-as-blocks", Run: func(r *Run) {
		c := newClaude(r, "claude-sonnet-4-5", deskText, nil)
		blocks := func(order ...int) (b []anthropic.ContentBlockParamUnion) {
			for _, n := range order {
				b = append(b, anthropic.NewTextBlock(documents[n]))
			}
			return append(b, anthropic.NewTextBlock("Which of these apply to a bike of 2024?"))
		}
		c.user(blocks(0, 1, 2, 6)...)
		c.send()
		if r.Sick {
			c.params.Messages[0] = anthropic.NewUserMessage(blocks(0, 6, 1, 2)...)
		}
		c.turn(1)
	}, Want: []Label{{Line: 2, Against: 1, Cause: "document-order", Path: "messages[0].content", Within: true}}},
}
