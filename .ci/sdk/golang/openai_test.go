package golang_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/ragpilot/ragpilot/ci/sdk/stage"
)

const answerText = "Käse 🧀 costs <b>5 €</b> & \"more\".\n\tRead [2], then \\n."

// ways are how streams may arrive.
var ways = []struct{ way, name string }{{"", "streamed"}, {"torn/", "streamed in torn pieces"}, {"gzip/", "streamed and compressed"}}

func question(model string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:    model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("You know „cheese“ & <prices>."), openai.UserMessage("What does it cost?")},
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: "search", Parameters: openai.FunctionParameters{"type": "object", "properties": map[string]any{"query": map[string]string{"type": "string"}}},
		})},
	}
}

// streamed is question with the usage at the end.
func streamed(model string) openai.ChatCompletionNewParams {
	q := question(model)
	q.StreamOptions.IncludeUsage = openai.Bool(true)
	return q
}

// chatEvents reads a stream to its end: all events, the text of their pieces, and what the SDK accumulates.
func chatEvents(t *testing.T, p place, params openai.ChatCompletionNewParams, opts ...option.RequestOption) (events []string, text string, acc openai.ChatCompletionAccumulator) {
	t.Helper()
	client := p.openai()
	stream := client.Chat.Completions.NewStreaming(patient(t), params, opts...)
	defer stream.Close()
	for stream.Next() {
		chunk := stream.Current()
		events = append(events, chunk.RawJSON())
		if !acc.AddChunk(chunk) {
			t.Fatalf("the accumulator refuses %s", chunk.RawJSON())
		}
		if len(chunk.Choices) > 0 {
			text += chunk.Choices[0].Delta.Content
		}
	}
	ok(t, stream.Err())
	return events, text, acc
}

func TestOpenAIChat(t *testing.T) {
	t.Run("an answer, its usage and its headers", func(t *testing.T) {
		untouchedAlike(t, func(t *testing.T, p place) []string {
			client := p.openai()
			var resp *http.Response
			out, err := client.Chat.Completions.New(patient(t), question("text"), option.WithResponseInto(&resp))
			ok(t, err)
			if got := out.Choices[0].Message.Content; got != answerText {
				t.Errorf("the text is %q", got)
			}
			if u := out.Usage; u.PromptTokensDetails.CachedTokens != 1920 || u.PromptTokens != 2048 {
				t.Errorf("usage %+v", u)
			}
			return []string{out.RawJSON(), fmt.Sprint(own(resp.Header))}
		})
	})
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			untouchedAlike(t, func(t *testing.T, p place) []string {
				events, text, acc := chatEvents(t, p, streamed(w.way+"text"))
				if whole := acc.Choices[0].Message.Content; text != answerText || whole != answerText || len(events) != 6 {
					t.Errorf("%d events with the text %q, accumulated %q", len(events), text, whole)
				}
				if acc.Usage.PromptTokensDetails.CachedTokens != 1920 || acc.Choices[0].FinishReason != "stop" {
					t.Errorf("accumulated %+v", acc.ChatCompletion)
				}
				return events
			})
		})
	}
	t.Run("an answer in pieces, and a compressed one", func(t *testing.T) {
		untouchedAlike(t, func(t *testing.T, p place) (out []string) {
			for _, way := range []string{"torn/text", "gzip/text"} {
				client := p.openai()
				answer, err := client.Chat.Completions.New(patient(t), question(way))
				ok(t, err)
				out = append(out, answer.RawJSON())
			}
			return out
		})
	})
	t.Run("streams arrive as they are made", func(t *testing.T) {
		p := at(t, stage.Sidecar)
		client := p.openai()
		stream := client.Chat.Completions.NewStreaming(patient(t), streamed("gate/text"))
		defer stream.Close()
		if !stream.Next() {
			t.Fatalf("no first event: %v", stream.Err())
		}
		on.Fake.Open(p.scenario) // only now the second one is sent
		n := 1
		for stream.Next() {
			n++
		}
		if ok(t, stream.Err()); n != 6 {
			t.Errorf("%d events, want 6", n)
		}
	})
	t.Run("an agent's tool calls, repeated documents left out", func(t *testing.T) {
		there, through := alike(t, func(t *testing.T, p place) (out []string) {
			texts, _ := results(t)
			client, q := p.openai(), question("agent")
			var resp *http.Response
			for step := range 4 {
				answer, err := client.Chat.Completions.New(patient(t), q, option.WithResponseInto(&resp))
				ok(t, err)
				out = append(out, answer.RawJSON())
				message := answer.Choices[0].Message
				if step == 3 {
					if message.Content != answerText {
						t.Errorf("at last %q", message.Content)
					}
					break
				}
				call := message.ToolCalls[0]
				if want := fmt.Sprintf(`{"query":"step %d","limit":3}`, step); call.Function.Arguments != want {
					t.Errorf("arguments %s, want %s", call.Function.Arguments, want)
				}
				q.Messages = append(q.Messages, message.ToParam(), openai.ToolMessage(texts[step], call.ID))
			}
			if p.name == stage.Sidecar {
				if r := resultHeader(t, resp); !r.Intercepted || r.Deduplicated != 2 { // of the last result: older ones are not planned again
					t.Errorf("X-ContextPilot-Result %+v", r)
				}
			}
			return out
		})
		deduplicated(t, there, through, chatToolTexts)
	})
	t.Run("an agent's tool calls, streamed", func(t *testing.T) {
		there, through := alike(t, func(t *testing.T, p place) (out []string) {
			texts, _ := results(t)
			q := streamed("agent")
			for step := range 4 {
				events, text, acc := chatEvents(t, p, q)
				out = append(out, events...)
				if step == 3 {
					if text != answerText {
						t.Errorf("at last %q", text)
					}
					break
				}
				message := acc.Choices[0].Message
				call := message.ToolCalls[0]
				if want := fmt.Sprintf(`{"query":"step %d","limit":3}`, step); call.Function.Arguments != want || acc.Usage.PromptTokensDetails.CachedTokens != 256 {
					t.Errorf("accumulated %+v", acc.ChatCompletion)
				}
				q.Messages = append(q.Messages, message.ToParam(), openai.ToolMessage(texts[step], call.ID))
			}
			return out
		})
		deduplicated(t, there, through, chatToolTexts)
	})
	t.Run("X-ContextPilot-* headers", func(t *testing.T) {
		texts, d := results(t)
		history := func(r0, r1 string) openai.ChatCompletionNewParams {
			q := question("text")
			for i, r := range []string{r0, r1} {
				var m openai.ChatCompletionMessage
				ok(t, json.Unmarshal(fmt.Appendf(nil, `{"role":"assistant","tool_calls":[{"id":"c%d","type":"function","function":{"name":"search","arguments":"{}"}}]}`, i), &m))
				q.Messages = append(q.Messages, m.ToParam(), openai.ToolMessage(r, fmt.Sprint("c", i)))
			}
			return q
		}
		ask := func(q openai.ChatCompletionNewParams, opts ...option.RequestOption) {
			client := at(t, stage.Sidecar).openai()
			_, err := client.Chat.Completions.New(patient(t), q, opts...)
			ok(t, err)
		}
		header := func(name, value string) option.RequestOption {
			return option.WithHeader("X-ContextPilot-"+name, value)
		}
		ask(history(texts[0], texts[1]), header("Enabled", "false"))
		ask(history(texts[0], texts[1]), header("Scope", "system"))
		ask(history("---\n"+d[0]+"\n---\n"+d[1], "---\n"+d[1]+"\n---\n"+d[2]), header("Mode", "separator"))
		ask(history("<item>"+d[0]+"</item>\n<item>"+d[1]+"</item>", "<item>"+d[1]+"</item>\n<item>"+d[2]+"</item>"), header("Mode", "xml_tag"), header("Tag", "item"))
		sent := at(t, stage.Sidecar).sent()
		for i, r := range sent {
			for name := range r.Header {
				if strings.HasPrefix(name, "X-Contextpilot-") {
					t.Errorf("request %d carries %s upstream", i, name)
				}
			}
			if want := []int{2, 2, 1, 1}[i]; strings.Count(r.Body, "Passage 1 of "+t.Name()+": what") != want {
				t.Errorf("request %d: the repeated document is there %d times, want %d: %s", i, strings.Count(r.Body, "Passage 1 of "+t.Name()+": what"), want, r.Body)
			}
		}
	})
}

// untouchedAlike is alike for requests that nothing is to be done to.
func untouchedAlike(t *testing.T, do func(t *testing.T, p place) []string) {
	t.Helper()
	there, through := alike(t, do)
	untouched(t, there, through)
}

func chatToolTexts(body any, replace func(string) string) {
	for _, m := range body.(map[string]any)["messages"].([]any) {
		if m := m.(map[string]any); m["role"] == "tool" {
			m["content"] = replace(m["content"].(string))
		}
	}
}

func TestOpenAIOthers(t *testing.T) {
	t.Run("models", func(t *testing.T) {
		untouchedAlike(t, func(t *testing.T, p place) []string {
			client := p.openai()
			page, err := client.Models.List(patient(t))
			ok(t, err)
			if len(page.Data) != 1 || page.Data[0].ID != "fake-1" {
				t.Errorf("models %+v", page.Data)
			}
			return []string{page.RawJSON()}
		})
	})
	t.Run("embeddings", func(t *testing.T) {
		untouchedAlike(t, func(t *testing.T, p place) []string {
			client := p.openai()
			out, err := client.Embeddings.New(patient(t), openai.EmbeddingNewParams{Model: "fake-1", Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("a")}})
			ok(t, err)
			return []string{out.RawJSON()}
		})
	})
	t.Run("a file sent and a binary one fetched", func(t *testing.T) {
		_, through := alike(t, func(t *testing.T, p place) []string {
			client := p.openai()
			content := bytes.Repeat([]byte("\x00\xff line\n"), 10_000)
			file, err := client.Files.New(patient(t), openai.FileNewParams{File: openai.File(bytes.NewReader(content), "b.jsonl", "application/jsonl"), Purpose: openai.FilePurposeBatch})
			ok(t, err)
			if want := fmt.Sprintf("b.jsonl-%x", sha256.Sum256(content)); file.Filename != want || file.Bytes != int64(len(content)) {
				t.Errorf("it arrived as %s", file.RawJSON())
			}
			resp, err := client.Files.Content(patient(t), "file-fake")
			ok(t, err)
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if ok(t, err); !bytes.Equal(got, stage.Binary()) {
				t.Error("the fetched file has changed on its way")
			}
			return []string{file.RawJSON()}
		})
		if !strings.HasPrefix(through[0].Header.Get("Content-Type"), "multipart/form-data; boundary=") {
			t.Errorf("sent as %s", through[0].Header.Get("Content-Type"))
		}
	})
	t.Run("the address from the environment", func(t *testing.T) {
		p := at(t, stage.Sidecar)
		t.Setenv("OPENAI_BASE_URL", on.URL(p.name)+"/v1")
		t.Setenv("OPENAI_API_KEY", stage.ClientKey)
		client := openai.NewClient(option.WithHeader("X-Scenario", p.scenario))
		_, err := client.Chat.Completions.New(patient(t), question("text"))
		ok(t, err)
		if sent := p.sent(); len(sent) != 1 || sent[0].Header.Get("Authorization") != "Bearer "+stage.ClientKey {
			t.Errorf("the upstream got %+v", sent)
		}
	})
}
