package clients

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
)

// dialog is a program that uses the Responses API and keeps the conversation itself.
type dialog struct {
	*Run
	client openai.Client
	params responses.ResponseNewParams
	items  []responses.ResponseInputItemUnionParam
	text   string
}

func newDialog(r *Run, model, text string, tools []Tool) *dialog {
	d := &dialog{Run: r, text: text, client: openai.NewClient(option.WithBaseURL(r.URL+"/v1"), option.WithAPIKey("k"),
		option.WithMaxRetries(0))}
	d.params = responses.ResponseNewParams{Model: model, Store: openai.Bool(false)}
	d.instructions(text)
	d.tools(tools)
	return d
}

func (d *dialog) instructions(text string) { d.params.Instructions = openai.String(text) }

func (d *dialog) tools(tools []Tool) {
	d.params.Tools = nil
	for _, t := range tools {
		d.params.Tools = append(d.params.Tools, responsesTool(t, t.Schema()))
	}
}

func responsesTool(t Tool, schema map[string]any) responses.ToolUnionParam {
	u := responses.ToolParamOfFunction(t.Name, schema, false)
	u.OfFunction.Description = openai.String(t.Description)
	return u
}

func said(text string) responses.ResponseInputItemUnionParam {
	return responses.ResponseInputItemParamOfMessage(text, responses.EasyInputMessageRoleUser)
}

func spoken(text string) responses.ResponseInputItemUnionParam {
	return responses.ResponseInputItemParamOfMessage(text, responses.EasyInputMessageRoleAssistant)
}

func (d *dialog) send() {
	d.params.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: d.items}
	out := must(d.client.Responses.New(d, d.params))
	for _, o := range out.Output {
		if o.Type == "function_call" {
			d.items = append(d.items, responses.ResponseInputItemParamOfFunctionCall(o.Arguments.OfString, o.CallID, o.Name))
		} else {
			d.items = append(d.items, spoken(out.OutputText()))
		}
	}
}

func (d *dialog) turn(n int) {
	d.items = append(d.items, said(ask(d.text, n)))
	d.send()
}

func (d *dialog) only(n int) {
	d.items = nil
	d.turn(n)
}

// used lets the model call a tool, and adds the result.
func (d *dialog) used(call Call, result string) {
	d.Script(Answer{Calls: []Call{call}})
	d.send()
	d.result(call.ID, result)
}

func (d *dialog) result(call, result string) {
	item := responses.ResponseInputItemParamOfFunctionCallOutput(result)
	item.OfFunctionCallOutput.CallID = param.NewOpt(call)
	d.items = append(d.items, item)
}

// seen is a message with a picture.
func seen(text, url string) responses.ResponseInputItemUnionParam {
	picture := responses.ResponseInputContentParamOfInputImage(responses.ResponseInputImageDetailAuto)
	picture.OfInputImage.ImageURL = openai.String(url)
	return responses.ResponseInputItemParamOfMessage(responses.ResponseInputMessageContentListParam{
		responses.ResponseInputContentParamOfInputText(text), picture,
	}, responses.EasyInputMessageRoleUser)
}

func instructions(cause string) []Label {
	return []Label{{Line: 2, Against: 1, Cause: cause, Path: "instructions"}}
}

// instructed asks two questions behind two instructions.
func instructed(r *Run, healthy, sick string, tools []Tool) {
	d := newDialog(r, "gpt-5", healthy, tools)
	d.only(0)
	d.instructions(If(r.Sick, sick, healthy))
	d.only(1)
}

var responsesCases = []Case{
	{Name: "responses-clock-unix", Run: func(r *Run) {
		instructed(r, fmt.Sprintf("%s\n\nnow=%d", opsText, r.Time(0).Unix()), fmt.Sprintf("%s\n\nnow=%d", opsText, r.Time(1).Unix()), opsTools)
	}, Want: instructions("clock")},
	{Name: "responses-nanoid", Run: func(r *Run) {
		instructed(r, "Thread "+r.NanoID()+".\n"+travelText, "Thread "+r.NanoID()+".\n"+travelText, nil)
	}, Want: instructions("random-id")},
	{Name: "responses-template-version", Run: func(r *Run) {
		instructed(r, cookText, strings.Replace(cookText, "there is fish or a dish without meat", "there is fish, or once a month pancakes",
			1), nil)
	}, Want: instructions("template")},
	{Name: "responses-step-counter", Run: func(r *Run) {
		d := newDialog(r, "gpt-5", opsText+"\n\nStep 1 of 9.", opsTools)
		d.items = append(d.items, said(ask(opsText, 0)))
		d.used(Call{"call_s1", "list_pods", `{"namespace":"shop"}`}, podList)
		d.instructions(opsText + fmt.Sprintf("\n\nStep %d of 9.", If(r.Sick, 2, 1)))
		d.used(Call{"call_s2", "read_logs", `{"pod":"cart-5f7b9d8c6-hh2rn"}`}, logLines)
		d.instructions(opsText + fmt.Sprintf("\n\nStep %d of 9.", If(r.Sick, 3, 1)))
		d.send()
	}, Want: []Label{
		{Line: 2, Against: 1, Cause: "counter", Path: "instructions"}, {Line: 3, Against: 2, Cause: "counter", Path: "instructions"},
	}},
	{Name: "responses-documents-in-the-instructions", Run: func(r *Run) {
		instructed(r, deskText+"\n\n"+joined([]int{0, 7, 3, 5}), deskText+"\n\n"+joined([]int{7, 5, 3, 0}), nil)
	}, Want: instructions("document-order")},
	{Name: "responses-indented-instructions", Run: func(r *Run) {
		instructed(r, reviewText, "    "+strings.ReplaceAll(reviewText, "\n", "\n    "), nil)
	}, Want: instructions("whitespace")},
	{Name: "responses-greeting", Run: func(r *Run) {
		instructed(r, "Greet the user as Katharina.\n"+travelText, "Greet the user as Mohammed.\n"+travelText, travelTools)
	}, Want: instructions("user-name")},
	{Name: "responses-picture-encoded-again", Run: func(r *Run) {
		d := newDialog(r, "gpt-5", deskText, nil)
		d.items = append(d.items, seen("Is this tyre still good?", dataURL(2, 92)))
		d.send()
		d.items[0] = seen("Is this tyre still good?", dataURL(2, If(r.Sick, 75, 92)))
		d.turn(7)
	}, Want: []Label{{Line: 2, Against: 1, Cause: "image", Path: "input[0].content[1].image_url"}}},
	{Name: "responses-a-message-put-first", Run: func(r *Run) {
		d := newDialog(r, "gpt-5", reviewText, nil)
		d.turn(0)
		d.turn(1)
		if r.Sick {
			d.items = slices.Insert(d.items, 0, said("Summary of what we spoke about last week: clause 4 is settled, clause 11 is open."))
		}
		d.turn(2)
	}, Want: []Label{{Line: 3, Against: 2, Cause: "edited-history", Path: "input[0]", Within: true}}},
	{Name: "responses-output-of-a-tool-cut", Run: func(r *Run) {
		d := newDialog(r, "gpt-5", opsText, opsTools)
		d.items = append(d.items, said(ask(opsText, 2)))
		d.used(Call{"call_o1", "list_pods", `{"namespace":"shop"}`}, podList)
		d.send()
		if r.Sick {
			d.items[2].OfFunctionCallOutput.Output.OfString = openai.String("(output removed to save room)")
		}
		d.turn(4)
	}, Want: []Label{{Line: 3, Against: 2, Cause: "edited-history", Path: "input[2]", Within: true}}},
	{Name: "responses-a-tool-less", Run: func(r *Run) {
		d := newDialog(r, "gpt-5", deskText, deskTools)
		d.turn(1)
		if r.Sick {
			d.tools([]Tool{deskTools[0], deskTools[2], deskTools[3]})
		}
		d.turn(2)
	}, Want: []Label{{Line: 2, Against: 1, Cause: "tool-set", Path: "tools[1]"}}},
	{Name: "responses-required-of-a-map", Run: func(r *Run) {
		d := newDialog(r, "gpt-5", travelText, travelTools)
		d.only(0)
		if r.Sick {
			schema := travelTools[0].Schema()
			schema["required"] = []string{"to", "from"}
			d.params.Tools[0] = responsesTool(travelTools[0], schema)
		}
		d.only(1)
	}, Want: []Label{{Line: 2, Against: 1, Cause: "map-order", Path: "tools[0].parameters.required"}}},
	{Name: "responses-tools-of-a-map", Run: func(r *Run) {
		d := newDialog(r, "gpt-5", deskText, deskTools)
		d.only(0)
		newDialog(r, "gpt-5", cookText, nil).only(0)
		d.tools(Pick(deskTools, If(r.Sick, []int{0, 1, 3, 2}, InOrder(4))))
		d.only(1)
	}, Want: []Label{{Line: 3, Against: 1, Cause: "tool-order", Path: "tools[2]"}}},
	{Name: "responses-another-model", Run: func(r *Run) {
		d := newDialog(r, "gpt-5", cookText, nil)
		d.turn(0)
		d.params.Model = If(r.Sick, "gpt-5-mini", "gpt-5")
		d.turn(1)
	}, Want: []Label{{Line: 2, Against: 1, Cause: "model", Path: "model"}}},
	{Name: "responses-prompt-cache-key", Run: func(r *Run) {
		d := newDialog(r, "gpt-5", travelText, travelTools)
		for n := range 2 {
			d.params.PromptCacheKey = openai.String(If(r.Sick, r.UUID(), "travel"))
			d.only(n)
		}
	}, Want: []Label{{Line: 2, Against: 1, Cause: "salt", Path: "prompt_cache_key"}}},
}
