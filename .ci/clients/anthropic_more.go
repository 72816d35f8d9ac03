package clients

import (
	"fmt"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
)

// behind asks two questions behind two lists of system blocks.
func behind(r *Run, tools []Tool, healthy, sick []string) {
	c := newClaude(r, "claude-sonnet-4-5", "", tools)
	c.text = reviewText
	c.system(healthy...)
	c.only(0)
	c.system(If(r.Sick, sick, healthy)...)
	c.only(1)
}

func block(n int, cause string) []Label {
	return []Label{{Line: 2, Against: 1, Cause: cause, Path: fmt.Sprintf("system[%d].text", n)}}
}

var anthropicMoreCases = []Case{
	{Name: "anthropic-spaces-at-the-end-of-lines", Run: func(r *Run) {
		behind(r, nil, []string{reviewText}, []string{strings.ReplaceAll(reviewText, "\n", " \n")})
	}, Want: block(0, "whitespace")},
	{Name: "anthropic-template-of-the-first-block", Run: func(r *Run) {
		behind(r, travelTools, []string{travelText, "Answer in French."},
			[]string{strings.Replace(travelText, "Never book.", "Never book and never hold seats.", 1), "Answer in French."})
	}, Want: block(0, "template")},
	{Name: "anthropic-step-counter", Run: func(r *Run) {
		behind(r, opsTools, []string{opsText, "This is step 2 of 9."}, []string{opsText, "This is step 3 of 9."})
	}, Want: block(1, "counter")},
	{Name: "anthropic-documents-in-the-system-text", Run: func(r *Run) {
		behind(r, nil, []string{reviewText, joined([]int{1, 3, 4, 7})}, []string{reviewText, joined([]int{3, 1, 7, 4})})
	}, Want: block(1, "document-order")},
	{Name: "anthropic-session-in-a-tool-description", Run: func(r *Run) {
		c := newClaude(r, "claude-sonnet-4-5", deskText, deskTools)
		for n := range 2 {
			c.params.Tools[2].OfTool.Description = anthropic.String(deskTools[2].Description + " (session " + If(r.Sick, r.Hex(32), "none") + ")")
			c.only(n)
		}
	}, Want: []Label{{Line: 2, Against: 1, Cause: "random-id", Path: "tools[2].description"}}},
	{Name: "anthropic-name-in-the-first-message", Run: func(r *Run) {
		c := newClaude(r, "claude-sonnet-4-5", cookText, nil)
		for _, name := range []string{"Ingrid", "Rashid"} {
			c.params.Messages = nil
			c.user(anthropic.NewTextBlock("Hello, I am " + If(r.Sick, name, "the cook") +
				". I have the kitchen of the school today, with eighty children and one helper."))
			c.add(anthropic.NewAssistantMessage(anthropic.NewTextBlock("Welcome. What do you want to cook, and what was delivered?")))
			c.turn(0)
		}
	}, Want: []Label{{Line: 2, Against: 1, Cause: "user-name", Path: "messages[0].content[0].text"}}},
	{Name: "anthropic-picture-encoded-again", Run: func(r *Run) {
		c := newClaude(r, "claude-sonnet-4-5", deskText, nil)
		look := func(quality int) anthropic.MessageParam {
			return anthropic.NewUserMessage(anthropic.NewImageBlockBase64("image/jpeg", base64Picture(3, quality)),
				anthropic.NewTextBlock("What is broken here?"))
		}
		c.add(look(90))
		c.send()
		c.turn(1)
		c.params.Messages[0] = look(If(r.Sick, 60, 90))
		c.turn(2)
	}, Want: []Label{{Line: 3, Against: 2, Cause: "image", Path: "messages[0].content[0].source.data"}}},
	{Name: "anthropic-another-model", Run: func(r *Run) {
		c := newClaude(r, "claude-opus-4-1", opsText, opsTools)
		c.turn(0)
		c.params.Model = If(r.Sick, "claude-haiku-4-5", "claude-opus-4-1")
		c.turn(1)
	}, Want: []Label{{Line: 2, Against: 1, Cause: "model", Path: "model"}}},
	{Name: "anthropic-a-schema-with-a-new-property", Run: func(r *Run) {
		c := newClaude(r, "claude-sonnet-4-5", deskText, deskTools)
		c.turn(0)
		if r.Sick {
			t := deskTools[1]
			t.Props = append(t.Props[:3:3], Prop{Name: "incoming", Type: "boolean", Description: "Whether to count what is on its way."})
			c.params.Tools[1] = claudeTool(t, t.Schema()["properties"])
		}
		c.turn(1)
	}, Want: []Label{{Line: 2, Against: 1, Cause: "tool-set", Path: "tools[1]"}}},
	{Name: "anthropic-a-block-of-the-system-text-more", Run: func(r *Run) {
		behind(r, nil, []string{cookText, "The week is that of the harvest festival."},
			[]string{cookText, "Strawberries are off the list until further notice.", "The week is that of the harvest festival."})
	}, Want: block(1, "template")},
}
