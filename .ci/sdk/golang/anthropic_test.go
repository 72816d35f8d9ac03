package golang_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/ragpilot/ragpilot/ci/sdk/stage"
)

func message(model string, more ...anthropic.MessageParam) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: anthropic.Model(model), MaxTokens: 1024,
		System:   []anthropic.TextBlockParam{{Text: "You know „cheese“ & <prices>."}},
		Messages: append([]anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("What does it cost?"))}, more...),
		Tools: []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
			Name: "search", InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{"query": map[string]string{"type": "string"}}},
		}}},
	}
}

// messageEvents reads a stream to its end: all events, the text of their pieces, and what the SDK accumulates.
func messageEvents(t *testing.T, p place, params anthropic.MessageNewParams) (events []string, text string, acc anthropic.Message) {
	t.Helper()
	client := p.anthropic()
	stream := client.Messages.NewStreaming(patient(t), params)
	defer stream.Close()
	for stream.Next() {
		event := stream.Current()
		events = append(events, event.RawJSON())
		ok(t, acc.Accumulate(event))
		text += event.Delta.Text
	}
	ok(t, stream.Err())
	return events, text, acc
}

// wholeMessage checks the scripted answer, however it came.
func wholeMessage(t *testing.T, m anthropic.Message) {
	t.Helper()
	if len(m.Content) != 2 {
		t.Fatalf("%d blocks: %s", len(m.Content), m.RawJSON())
	}
	if thought := m.Content[0].AsThinking(); thought.Thinking != "Which cheese?" || thought.Signature != "c2lnbmF0dXJl" {
		t.Errorf("thinking %+v", thought)
	}
	if text := m.Content[1].AsText().Text; text != answerText || m.StopReason != anthropic.StopReasonEndTurn {
		t.Errorf("text %q, ended by %s", text, m.StopReason)
	}
	if u := m.Usage; u.CacheReadInputTokens != 1856 || u.CacheCreationInputTokens != 64 || u.InputTokens != 128 || u.OutputTokens != 17 {
		t.Errorf("usage %+v", u)
	}
}

func TestAnthropicMessages(t *testing.T) {
	t.Run("an answer, its usage and its headers", func(t *testing.T) {
		untouchedAlike(t, func(t *testing.T, p place) []string {
			client := p.anthropic()
			var resp *http.Response
			out, err := client.Messages.New(patient(t), message("text"), option.WithResponseInto(&resp))
			ok(t, err)
			wholeMessage(t, *out)
			return []string{out.RawJSON(), fmt.Sprint(own(resp.Header))}
		})
	})
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			untouchedAlike(t, func(t *testing.T, p place) []string {
				events, text, acc := messageEvents(t, p, message(w.way+"text"))
				wholeMessage(t, acc)
				if text != answerText || len(events) != 13 {
					t.Errorf("%d events with the text %q", len(events), text)
				}
				return events
			})
		})
	}
	t.Run("streams arrive as they are made", func(t *testing.T) {
		p := at(t, stage.Sidecar)
		client := p.anthropic()
		stream := client.Messages.NewStreaming(patient(t), message("gate/text"))
		defer stream.Close()
		if !stream.Next() {
			t.Fatalf("no first event: %v", stream.Err())
		}
		on.Fake.Open(p.scenario) // only now the second one is sent
		n := 1
		for stream.Next() {
			n++
		}
		if ok(t, stream.Err()); n != 13 {
			t.Errorf("%d events, want 13", n)
		}
	})
	for _, streamed := range []bool{false, true} {
		t.Run(map[bool]string{false: "an agent's tool calls, repeated documents left out", true: "an agent's tool calls, streamed"}[streamed], func(t *testing.T) {
			there, through := alike(t, func(t *testing.T, p place) (out []string) {
				texts, _ := results(t)
				client, q := p.anthropic(), message("agent")
				var resp *http.Response
				for step := range 4 {
					var answer anthropic.Message
					if streamed {
						events, _, acc := messageEvents(t, p, q)
						out, answer = append(out, events...), acc
					} else {
						whole, err := client.Messages.New(patient(t), q, option.WithResponseInto(&resp))
						ok(t, err)
						out, answer = append(out, whole.RawJSON()), *whole
					}
					if step == 3 {
						wholeMessage(t, answer)
						break
					}
					call := answer.Content[1].AsToolUse()
					if want := fmt.Sprintf(`{"query":"step %d","limit":3}`, step); string(call.Input) != want || answer.Usage.CacheReadInputTokens != 256 {
						t.Errorf("called with %s, usage %+v", call.Input, answer.Usage)
					}
					q.Messages = append(q.Messages, answer.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock(call.ID, texts[step], false)))
				}
				if p.name == stage.Sidecar && !streamed {
					if r := resultHeader(t, resp); !r.Intercepted || r.Deduplicated != 2 {
						t.Errorf("X-ContextPilot-Result %+v", r)
					}
				}
				return out
			})
			deduplicated(t, there, through, messageToolTexts)
		})
	}
	t.Run("X-ContextPilot-* headers", func(t *testing.T) {
		texts, _ := results(t)
		q := message("text")
		for i := range 2 {
			call := anthropic.NewToolUseBlock(fmt.Sprint("c", i), map[string]string{}, "search")
			q.Messages = append(q.Messages, anthropic.NewAssistantMessage(call), anthropic.NewUserMessage(anthropic.NewToolResultBlock(fmt.Sprint("c", i), texts[i], false)))
		}
		p := at(t, stage.Sidecar)
		client := p.anthropic()
		for _, opt := range []option.RequestOption{option.WithHeader("X-ContextPilot-Enabled", "false"), option.WithHeader("X-ContextPilot-Scope", "tool_results")} {
			_, err := client.Messages.New(patient(t), q, opt)
			ok(t, err)
		}
		for i, r := range p.sent() {
			if n := strings.Count(r.Body, "Passage 1 of "+t.Name()+": what"); n != 2-i {
				t.Errorf("request %d: the repeated document is there %d times, want %d", i, n, 2-i)
			}
			for name := range r.Header {
				if strings.HasPrefix(name, "X-Contextpilot-") {
					t.Errorf("request %d carries %s upstream", i, name)
				}
			}
		}
	})
	t.Run("tokens counted, models, and a beta", func(t *testing.T) {
		untouchedAlike(t, func(t *testing.T, p place) []string {
			client := p.anthropic()
			count, err := client.Messages.CountTokens(patient(t), anthropic.MessageCountTokensParams{Model: "text", Messages: message("text").Messages})
			ok(t, err)
			page, err := client.Models.List(patient(t), anthropic.ModelListParams{Limit: anthropic.Int(7)})
			ok(t, err)
			beta, err := client.Beta.Messages.New(patient(t), anthropic.BetaMessageNewParams{
				Model: "text", MaxTokens: 5, Betas: []anthropic.AnthropicBeta{"some-beta-2026-01-01"},
				Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("q"))},
			})
			ok(t, err)
			sent := p.sent()
			if last := sent[len(sent)-1]; last.Path != "/v1/messages?beta=true" || last.Header.Get("Anthropic-Beta") != "some-beta-2026-01-01" || sent[1].Path != "/v1/models?limit=7" {
				t.Errorf("sent %+v", sent)
			}
			return []string{count.RawJSON(), page.RawJSON(), beta.RawJSON()}
		})
	})
	t.Run("the address from the environment", func(t *testing.T) {
		p := at(t, stage.Sidecar)
		t.Setenv("ANTHROPIC_BASE_URL", on.URL(p.name))
		t.Setenv("ANTHROPIC_API_KEY", stage.ClientKey)
		client := anthropic.NewClient(option.WithHeader("X-Scenario", p.scenario))
		_, err := client.Messages.New(patient(t), message("text"))
		ok(t, err)
		if sent := p.sent(); len(sent) != 1 || sent[0].Header.Get("X-Api-Key") != stage.ClientKey {
			t.Errorf("the upstream got %+v", sent)
		}
	})
}

func messageToolTexts(body any, replace func(string) string) {
	for _, m := range body.(map[string]any)["messages"].([]any) {
		for _, block := range m.(map[string]any)["content"].([]any) {
			if block := block.(map[string]any); block["type"] == "tool_result" {
				part := block["content"].([]any)[0].(map[string]any)
				part["text"] = replace(part["text"].(string))
			}
		}
	}
}

// raw decodes a body.
func raw(t *testing.T, body string) (out map[string]any) {
	t.Helper()
	ok(t, json.Unmarshal([]byte(body), &out))
	return out
}
