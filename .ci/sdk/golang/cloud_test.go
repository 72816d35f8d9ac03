package golang_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"

	"github.com/ragpilot/ragpilot/ci/sdk/stage"
)

// replaced checks that requests reached the provider, under its name, with the provider's key and no other.
func replaced(t *testing.T, through []stage.Request, host, header, want string) {
	t.Helper()
	for _, r := range through {
		if r.Host != host || r.Header.Get(header) != want {
			t.Errorf("%s was asked with %s: %q, want %s with %q", r.Host, header, r.Header.Get(header), host, want)
		}
		for _, name := range []string{"Authorization", "X-Api-Key"} {
			if name != header && r.Header.Values(name) != nil {
				t.Errorf("%s arrived, too", name)
			}
		}
		if strings.Contains(fmt.Sprint(r.Header), stage.ClientKey) {
			t.Errorf("the client's key arrived: %v", r.Header)
		}
	}
}

func TestCloud(t *testing.T) {
	if why := stage.CloudReachable(); why != "" {
		t.Skip(why)
	}
	const mark = `"cache_control":{"type":"ephemeral"}`
	for _, provider := range []struct{ place, host, path string }{
		{stage.Anthropic, "api.anthropic.com", "/v1/messages"},
		{stage.MiniMax, "api.minimax.io", "/anthropic/v1/messages"},
	} {
		t.Run(provider.place+": the key is replaced, the prompt marked, the answer as it is", func(t *testing.T) {
			_, through := alikeAt(t, provider.place, func(t *testing.T, p place) (out []string) {
				client := p.anthropic()
				var resp *http.Response
				whole, err := client.Messages.New(patient(t), message("text"), anthropicoption.WithResponseInto(&resp))
				ok(t, err)
				wholeMessage(t, *whole)
				if p.name != stage.Direct && !strings.Contains(resp.Header.Get("X-ContextPilot-Cloud-Cache"), `"cache_read_tokens":1856`) {
					t.Errorf("X-ContextPilot-Cloud-Cache: %s", resp.Header.Get("X-ContextPilot-Cloud-Cache"))
				}
				events, _, acc := messageEvents(t, p, message("text"))
				wholeMessage(t, acc)
				return append(events, whole.RawJSON())
			})
			replaced(t, through, provider.host, "X-Api-Key", stage.CloudKey)
			for _, r := range through {
				if n := strings.Count(r.Body, mark); n != 2 || r.Path != provider.path || r.Proto != "HTTP/2.0" {
					t.Errorf("%s %s with %d marks: %s", r.Proto, r.Path, n, r.Body)
				}
			}
		})
	}
	t.Run("anthropic: an agent's tool calls", func(t *testing.T) {
		_, through := alikeAt(t, stage.Anthropic, func(t *testing.T, p place) (out []string) {
			texts, _ := results(t)
			q := message("agent")
			for step := range 4 {
				events, _, acc := messageEvents(t, p, q)
				if out = append(out, events...); step == 3 {
					wholeMessage(t, acc)
					break
				}
				q.Messages = append(q.Messages, acc.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock(acc.Content[1].ID, texts[step], false)))
			}
			return out
		})
		last := raw(t, through[3].Body)
		n := 0
		messageToolTexts(last, func(text string) string {
			n += strings.Count(text, ": what it says is of no importance")
			return text
		})
		if marks := strings.Count(through[3].Body, mark); n != 4 || marks < 2 || marks > 4 {
			t.Errorf("%d documents and %d marks: %s", n, marks, through[3].Body)
		}
	})
	t.Run("anthropic: a client's own breakpoints stay the only ones", func(t *testing.T) {
		q := message("text")
		q.System[0].CacheControl = anthropic.NewCacheControlEphemeralParam()
		there, through := alikeAt(t, stage.Anthropic, func(t *testing.T, p place) []string {
			client := p.anthropic()
			out, err := client.Messages.New(patient(t), q)
			ok(t, err)
			return []string{out.RawJSON()}
		})
		same(t, "the body", there[0].Body, through[0].Body)
	})
	t.Run("anthropic: a client with a bearer token", func(t *testing.T) {
		p := at(t, stage.Anthropic)
		client := p.anthropic(anthropicoption.WithHeaderDel("X-Api-Key"), anthropicoption.WithAuthToken(stage.ClientKey))
		_, err := client.Messages.New(patient(t), message("text"))
		ok(t, err)
		replaced(t, p.sent(), "api.anthropic.com", "X-Api-Key", stage.CloudKey)
	})
	t.Run("anthropic: clients keep their own keys", func(t *testing.T) {
		p := at(t, stage.AnthropicOwn)
		client := p.anthropic()
		_, err := client.Messages.New(patient(t), message("text"))
		ok(t, err)
		if r := p.sent()[0]; r.Header.Get("X-Api-Key") != stage.ClientKey {
			t.Errorf("it was asked with %v", r.Header)
		}
	})
	t.Run("openai: the key is replaced, the answers as they are", func(t *testing.T) {
		there, through := alikeAt(t, stage.OpenAI, func(t *testing.T, p place) (out []string) {
			client := p.openai(openaioption.WithOrganization("org-of-the-client"), openaioption.WithProject("project-of-the-client"))
			var resp *http.Response
			whole, err := client.Chat.Completions.New(patient(t), question("text"), openaioption.WithResponseInto(&resp))
			ok(t, err)
			if p.name != stage.Direct && !strings.Contains(resp.Header.Get("X-ContextPilot-Cloud-Cache"), `"cache_read_tokens":1920`) {
				t.Errorf("X-ContextPilot-Cloud-Cache: %s", resp.Header.Get("X-ContextPilot-Cloud-Cache"))
			}
			models, err := client.Models.List(patient(t))
			ok(t, err)
			events, text, _ := chatEvents(t, p, streamed("text"))
			made, _, _, last := responseEvents(t, p, responseQuestion("text"))
			if text != answerText || last.OutputText() != answerText {
				t.Errorf("streamed %q and %q", text, last.OutputText())
			}
			return append(append(events, made...), whole.RawJSON(), models.RawJSON())
		})
		replaced(t, through, "api.openai.com", "Authorization", "Bearer "+stage.CloudKey)
		for i, r := range through {
			if same(t, "the body", there[i].Body, r.Body); r.Header.Get("OpenAI-Organization")+r.Header.Get("OpenAI-Project") != "" {
				t.Errorf("the client's organization arrived: %v", r.Header)
			}
		}
	})
	t.Run("openai: an agent's tool calls", func(t *testing.T) {
		there, through := alikeAt(t, stage.OpenAI, func(t *testing.T, p place) (out []string) {
			texts, _ := results(t)
			q := streamed("agent")
			for step := range 4 {
				events, _, acc := chatEvents(t, p, q)
				if out = append(out, events...); step == 3 {
					break
				}
				m := acc.Choices[0].Message
				q.Messages = append(q.Messages, m.ToParam(), openai.ToolMessage(texts[step], m.ToolCalls[0].ID))
			}
			return out
		})
		deduplicated(t, there, through, chatToolTexts)
	})
	t.Run("openai: clients keep their own keys", func(t *testing.T) {
		p := at(t, stage.OpenAIOwn)
		client := p.openai(openaioption.WithOrganization("org-of-the-client"))
		_, err := client.Chat.Completions.New(patient(t), question("text"))
		ok(t, err)
		if r := p.sent()[0]; r.Header.Get("Authorization") != "Bearer "+stage.ClientKey || r.Header.Get("OpenAI-Organization") != "org-of-the-client" {
			t.Errorf("it was asked with %v", r.Header)
		}
	})
	t.Run("anthropic: tokens are counted with the provider's key", func(t *testing.T) {
		_, through := alikeAt(t, stage.Anthropic, func(t *testing.T, p place) []string {
			client := p.anthropic()
			count, err := client.Messages.CountTokens(patient(t), anthropic.MessageCountTokensParams{Model: "text", Messages: message("text").Messages})
			ok(t, err)
			return []string{count.RawJSON()}
		})
		replaced(t, through, "api.anthropic.com", "X-Api-Key", stage.CloudKey)
	})
	for _, name := range []string{stage.Anthropic, stage.OpenAI} {
		api := map[string]string{stage.Anthropic: "anthropic", stage.OpenAI: "openai chat"}[name]
		t.Run(name+": errors are the provider's", func(t *testing.T) {
			alikeAt(t, name, func(t *testing.T, p place) (out []string) {
				for _, code := range []int{400, 401, 404, 429, 500, 529} {
					err := callers[api].ask(patient(t), p, fmt.Sprintf("%d/text", code), 0)
					if status(err) != code {
						t.Errorf("got %s", typed(err))
					}
					out = append(out, typed(err))
				}
				return out
			})
			p := at(t, name)
			if n, err := callers[api].stream(patient(t), p, "cut/text"); err == nil || n == 0 {
				t.Errorf("a stream that breaks off: %d events, then %v", n, err)
			}
		})
	}
	t.Run("a stream is cancelled and the provider is told", func(t *testing.T) {
		p := at(t, stage.Anthropic)
		client := p.anthropic()
		stream := client.Messages.NewStreaming(patient(t), message("hang/text"))
		if !stream.Next() {
			t.Fatal(stream.Err())
		}
		ok(t, stream.Close())
		ok(t, on.Fake.Gone(patient(t), p.scenario))
	})
}
