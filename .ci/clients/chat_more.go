package clients

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func imagePart(url string) openai.ChatCompletionContentPartUnionParam {
	return openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: url})
}

// photo is a first message with a picture.
func photo(text, url string) chatMessage {
	return openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{openai.TextContentPart(text), imagePart(url)})
}

// parts writes documents as parts of a message, and the question behind them.
func parts(question string, order ...int) chatMessage {
	var p []openai.ChatCompletionContentPartUnionParam
	for _, n := range order {
		p = append(p, openai.TextContentPart("Source: "+documents[n]))
	}
	return openai.UserMessage(append(p, openai.TextContentPart(question)))
}

// twice asks two questions behind two system texts.
func twice(r *Run, healthy, sick string) {
	c := newChat(r, "qwen3-32b", healthy, nil)
	c.only(0)
	c.system(If(r.Sick, sick, healthy))
	c.only(1)
}

var chatMoreCases = []Case{
	{Name: "chat-carriage-returns", Run: func(r *Run) {
		twice(r, opsText, strings.ReplaceAll(opsText, "\n", "\r\n"))
	}, Want: systemText(2, 1, "whitespace")},
	{Name: "chat-spaces-at-the-end-of-lines", Run: func(r *Run) {
		twice(r, deskText, strings.ReplaceAll(deskText, ".\n", ".  \n"))
	}, Want: systemText(2, 1, "whitespace")},
	{Name: "chat-no-break-space", Run: func(r *Run) {
		twice(r, reviewText, strings.Replace(reviewText, "ten percent", "ten\u00a0percent", 1))
	}, Want: systemText(2, 1, "whitespace")},
	{Name: "chat-template-version", Run: func(r *Run) {
		twice(r, "Prompt desk/v14.\n"+deskText, "Prompt desk/v15.\n"+strings.Replace(deskText, "the hotline answers at any hour",
			"the hotline is 0800 1100", 1))
	}, Want: systemText(2, 1, "template")},
	{Name: "chat-e-mail-address-in-the-system-text", Run: func(r *Run) {
		twice(r, strings.Replace(deskText, "\n\nRules", "\nThe customer is signed in as m.okafor@example.org.\n\nRules", 1),
			strings.Replace(deskText, "\n\nRules", "\nThe customer is signed in as lea.brandt@example.net.\n\nRules", 1))
	}, Want: systemText(2, 1, "user-name")},
	{Name: "chat-requests-so-far", Run: func(r *Run) {
		twice(r, travelText+"\n\nRequests so far: 17", travelText+"\n\nRequests so far: 18")
	}, Want: systemText(2, 1, "counter")},
	{Name: "chat-day-of-the-week", Run: func(r *Run) {
		twice(r, cookText+"\nToday is Thursday.", cookText+"\nToday is Friday.")
	}, Want: systemText(2, 1, "clock")},
	{Name: "chat-settings-as-json", Run: func(r *Run) {
		twice(r, `Settings: {"language":"de","tone":"friendly","currency":"EUR","max_lines":12}`+"\n"+deskText,
			`Settings: {"tone":"friendly","max_lines":12,"language":"de","currency":"EUR"}`+"\n"+deskText)
	}, Want: systemText(2, 1, "map-order")},
	{Name: "chat-picture-encoded-again", Run: func(r *Run) {
		c := newChat(r, "gpt-4.1", deskText, nil)
		c.add(photo("What is this part?", dataURL(1, 90)))
		c.send()
		c.params.Messages[1] = photo("What is this part?", dataURL(1, If(r.Sick, 80, 90)))
		c.turn(2)
	}, Want: []Label{{Line: 2, Against: 1, Cause: "image", Path: "messages[1].content[1].image_url.url"}}},
	{Name: "chat-signed-address-of-a-picture", Run: func(r *Run) {
		c := newChat(r, "gpt-4.1", deskText, nil)
		url := func(n int) string {
			return fmt.Sprintf("https://files.example.org/u/3381/brake.jpg?expires=%d&signature=%s", r.Time(n).Unix(), r.Hex(40))
		}
		first := url(0)
		c.add(photo("The pad looks like this.", first))
		c.send()
		c.turn(6)
		c.params.Messages[1] = photo("The pad looks like this.", If(r.Sick, url(1), first))
		c.turn(7)
	}, Want: []Label{{Line: 3, Against: 2, Cause: "image", Path: "messages[1].content[1].image_url.url"}}},
	{Name: "chat-another-model", Run: func(r *Run) {
		c := newChat(r, "gpt-4.1", travelText, travelTools)
		c.turn(0)
		c.params.Model = If(r.Sick, "gpt-4.1-mini", "gpt-4.1") // the expensive one for the first turn only
		c.turn(1)
		c.turn(2)
	}, Want: []Label{{Line: 2, Against: 1, Cause: "model", Path: "model"}}},
	{Name: "chat-cache-salt", Run: func(r *Run) {
		c := newChat(r, "qwen3-32b", opsText, opsTools)
		for n := range 2 {
			c.only(n, option.WithJSONSet("cache_salt", If(r.Sick, r.NanoID(), "tenant-4")))
		}
	}, Want: []Label{{Line: 2, Against: 1, Cause: "salt", Path: "cache_salt"}}},
	{Name: "chat-prompt-cache-key", Run: func(r *Run) {
		c := newChat(r, "gpt-4.1", opsText, opsTools)
		for n := range 2 {
			c.params.PromptCacheKey = openai.String(If(r.Sick, "session-"+r.Hex(8), "night-watch"))
			c.only(n)
		}
	}, Want: []Label{{Line: 2, Against: 1, Cause: "salt", Path: "prompt_cache_key"}}},
	{Name: "chat-documents-as-parts", Run: func(r *Run) {
		c := newChat(r, "gpt-4.1", deskText, nil)
		c.add(parts("What must I pay?", 4, 1, 3))
		c.send()
		if r.Sick {
			c.params.Messages[1] = parts("What must I pay?", 3, 4, 1)
		}
		c.turn(5)
	}, Want: []Label{{Line: 2, Against: 1, Cause: "document-order", Path: "messages[1].content", Within: true}}},
	{Name: "chat-documents-before-the-question", Run: func(r *Run) {
		c := newChat(r, "mistral-small", "Answer from the documents only.", nil)
		c.add(openai.UserMessage(joined([]int{5, 2, 6}) + "\n\nQuestion: Which tyre fits?"))
		c.send()
		c.params.Messages = c.params.Messages[:1]
		c.add(openai.UserMessage(joined(If(r.Sick, []int{6, 5, 2}, []int{5, 2, 6})) + "\n\nQuestion: Why does it squeal?"))
		c.send()
	}, Want: []Label{{Line: 2, Against: 1, Cause: "document-order", Path: "messages[1].content"}}},
	{Name: "chat-a-note-put-into-the-history", Run: func(r *Run) {
		c := newChat(r, "gpt-4.1", reviewText, nil)
		c.turn(0)
		c.turn(1)
		if r.Sick { // the program adds what it knows of the user behind the first question
			c.params.Messages = slices.Insert(c.params.Messages, 2, openai.UserMessage("(The contract is the one of Hallberg Castings, 31 pages.)"))
		}
		c.turn(2)
	}, Want: []Label{{Line: 3, Against: 2, Cause: "edited-history", Path: "messages[2]", Within: true}}},
	{Name: "chat-an-answer-cut-later", Run: func(r *Run) {
		c := newChat(r, "llama-3.3-70b", travelText, nil)
		long := "Take the 8:12 to Hamburg, then the night train to Basel. From there two trains to Lyon, and the fast one to Barcelona. " +
			"The fourth day goes along the coast to Valencia and over the hills to Madrid, the fifth to Porto by way of Vigo. Seats must be " +
			"booked for three of them."
		c.Script(Answer{Text: long})
		c.turn(0)
		c.turn(4)
		if r.Sick {
			c.params.Messages[2] = openai.AssistantMessage(long[:90] + "...")
		}
		c.turn(5)
	}, Want: []Label{{Line: 3, Against: 2, Cause: "edited-history", Path: "messages[2]", Within: true}}},
	{Name: "chat-a-tool-less", Run: func(r *Run) {
		c := newChat(r, "qwen3-32b", deskText, deskTools)
		c.turn(3)
		c.tools(If(r.Sick, append(slices.Clone(deskTools[:1]), deskTools[2:]...), deskTools)) // the stock server is away
		c.turn(4)
	}, Want: []Label{{Line: 2, Against: 1, Cause: "tool-set", Path: "tools[1]"}}},
}
