package clients

import (
	"slices"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"github.com/tmc/langchaingo/llms"
	"google.golang.org/genai"
)

func stableChat(r *Run) func(shop) *conversation {
	return func(s shop) *conversation {
		c := newChat(r, "gpt-4.1", s.text, s.tools)
		return chatConversation(c)
	}
}

func chatConversation(c *chat) *conversation {
	var last openai.ChatCompletionNewParams
	return &conversation{
		say: func(text string) {
			c.add(openai.UserMessage(text))
			last = c.params
			c.send()
			if a := c.params.Messages[len(c.params.Messages)-1].OfAssistant; len(a.ToolCalls) > 0 {
				c.add(openai.ToolMessage(podList, a.ToolCalls[0].OfFunction.ID))
				last = c.params
				c.send()
			}
		},
		calls: true,
		again: func() { must(c.client.Chat.Completions.New(c, last)) },
		tune: func() {
			c.params.Temperature, c.params.Seed = openai.Float(float64(c.rand.IntN(10))/10), openai.Int(int64(c.rand.IntN(1000)))
			c.params.MaxCompletionTokens, c.params.User = openai.Int(int64(256+c.rand.IntN(512))), openai.String("u-"+c.Hex(6))
			c.params.Metadata = shared.Metadata{"request": c.UUID()}
		},
	}
}

func stableResponses(r *Run) func(shop) *conversation {
	return func(s shop) *conversation {
		d := newDialog(r, "gpt-5", s.text, s.tools)
		var last responses.ResponseNewParams
		return &conversation{
			say: func(text string) {
				d.items = append(d.items, said(text))
				d.send()
				if call := d.items[len(d.items)-1].OfFunctionCall; call != nil {
					d.result(call.CallID, podList)
					d.send()
				}
				last = d.params
			},
			calls: true,
			again: func() { must(d.client.Responses.New(d, last)) },
			tune: func() {
				d.params.MaxOutputTokens, d.params.TopP = openai.Int(int64(256+r.rand.IntN(512))), openai.Float(0.9)
				d.params.Metadata = shared.Metadata{"request": r.UUID()}
			},
		}
	}
}

// stableAnthropic marks the last message for the cache, and takes the mark off the one before.
func stableAnthropic(r *Run) func(shop) *conversation {
	return func(s shop) *conversation {
		c := newClaude(r, "claude-sonnet-4-5", s.text, s.tools)
		c.params.System[0].CacheControl = anthropic.NewCacheControlEphemeralParam()
		var last anthropic.MessageNewParams
		return &conversation{
			say: func(text string) {
				for _, m := range c.params.Messages {
					for _, b := range m.Content {
						if b.OfText != nil {
							b.OfText.CacheControl = anthropic.CacheControlEphemeralParam{}
						}
					}
				}
				block := anthropic.NewTextBlock(text)
				block.OfText.CacheControl = anthropic.NewCacheControlEphemeralParam()
				c.user(block)
				last = c.params
				c.send()
				if call := c.params.Messages[len(c.params.Messages)-1].Content[0].OfToolUse; call != nil {
					c.user(anthropic.NewToolResultBlock(call.ID, podList, false))
					last = c.params
					c.send()
				}
			},
			calls: true,
			again: func() { must(c.client.Messages.New(c, last)) },
			tune: func() {
				c.params.MaxTokens, c.params.Temperature = int64(256+r.rand.IntN(512)), anthropic.Float(float64(r.rand.IntN(10))/10)
				c.params.Metadata = anthropic.MetadataParam{UserID: anthropic.String(r.UUID())}
			},
		}
	}
}

func stableLangchain(r *Run) func(shop) *conversation {
	openAI := r.rand.IntN(2) == 0
	return func(s shop) *conversation {
		m := langchainAnthropic(r)
		if openAI {
			m = langchainOpenAI(r)
		}
		t := newTalk(r, m, s.text)
		if s.tools != nil {
			t.tools(langchainTools(s.tools, sorted)...)
		}
		fixed := t.options
		var last []llms.MessageContent
		return &conversation{
			say: func(text string) {
				t.messages = append(t.messages, llms.TextParts(llms.ChatMessageTypeHuman, text))
				last = t.messages
				out := must(m.GenerateContent(r, t.messages, t.options...))
				t.messages = append(t.messages, llms.TextParts(llms.ChatMessageTypeAI, out.Choices[0].Content))
			},
			again: func() { must(m.GenerateContent(r, last, t.options...)) },
			tune: func() {
				t.options = append(slices.Clip(fixed), llms.WithTemperature(float64(r.rand.IntN(10))/10),
					llms.WithMaxTokens(256+r.rand.IntN(512)))
			},
		}
	}
}

func stableEino(r *Run) func(shop) *conversation {
	return func(s shop) *conversation {
		var infos []*schema.ToolInfo
		if s.tools != nil {
			infos = einoInfos(s.tools)
		}
		t := newEino(r, s.text, infos, nil)
		var last []*schema.Message
		var options []model.Option
		return &conversation{
			say: func(text string) {
				t.messages = append(t.messages, schema.UserMessage(text))
				last = t.messages
				t.messages = append(t.messages, must(t.model.Generate(r, t.messages, options...)))
			},
			again: func() { must(t.model.Generate(r, last, options...)) },
			tune: func() {
				options = []model.Option{model.WithTemperature(float32(r.rand.IntN(10)) / 10), model.WithMaxTokens(256 + r.rand.IntN(512))}
			},
		}
	}
}

func stableADK(r *Run) func(shop) *conversation {
	return func(s shop) *conversation {
		w := newWorker(r, s.text, s.tools)
		say := func(text string) { w.say(genai.NewContentFromText(text, genai.RoleUser), nil) }
		return &conversation{
			say:   say,
			calls: true,
			again: func() { say("Go on.") }, // a runner repeats nothing
			tune: func() {
				w.config.GenerateContentConfig = &genai.GenerateContentConfig{
					Temperature: new(float32(r.rand.IntN(10)) / 10), MaxOutputTokens: int32(256 + r.rand.IntN(512)),
				}
			},
		}
	}
}

// stableMCP asks the server for its tools before each conversation.
func stableMCP(r *Run) func(shop) *conversation {
	return func(s shop) *conversation {
		c := newChat(r, "qwen3-32b", s.text, nil)
		if s.tools != nil {
			c.params.Tools = converted(served(r, s.tools), InOrder(len(s.tools)))
		}
		return chatConversation(c)
	}
}
