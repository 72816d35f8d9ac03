package golang_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/ragpilot/ragpilot/ci/sdk/stage"
)

// endless keeps the random model from ending its answer.
var endless = option.WithJSONSet("ignore_eos", true)

func tide(system string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: "tiny", MaxTokens: openai.Int(20), Temperature: openai.Float(0),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(system), openai.UserMessage("When is the tide?")},
	}
}

// TestLocal asks the local engine, a process of its own with a real model, directly and through the sidecar.
func TestLocal(t *testing.T) {
	if !on.Has(stage.Local) {
		t.Skip("needs RAGPILOT_TINY_MODEL: a file of go run ./internal/testkit/tinymodel")
	}
	direct := at(t, stage.Local).openai()
	for _, name := range []string{stage.Local, stage.LocalBehind} {
		client := at(t, name).openai()
		t.Run(name+": models", func(t *testing.T) {
			page, err := client.Models.List(patient(t))
			if ok(t, err); len(page.Data) != 1 || page.Data[0].ID != "tiny" {
				t.Errorf("models %+v", page.Data)
			}
			one, err := client.Models.Get(patient(t), "tiny")
			if ok(t, err); one.ID != "tiny" {
				t.Errorf("model %+v", one)
			}
		})
		t.Run(name+": chat, whole and streamed, with cached tokens", func(t *testing.T) {
			q := tide("The boats of " + t.Name() + " leave with the tide, and come back with the next one.")
			first, err := client.Chat.Completions.New(patient(t), q, endless)
			ok(t, err)
			again, err := direct.Chat.Completions.New(patient(t), q, endless)
			ok(t, err)
			if same(t, "the text", again.Choices[0].Message.Content, first.Choices[0].Message.Content); again.Usage.PromptTokensDetails.CachedTokens == 0 || first.Usage.CompletionTokens != 20 || first.Choices[0].FinishReason != "length" {
				t.Errorf("%s\n%s", first.RawJSON(), again.RawJSON())
			}
			q.StreamOptions.IncludeUsage = openai.Bool(true)
			stream := client.Chat.Completions.NewStreaming(patient(t), q, endless)
			defer stream.Close()
			var acc openai.ChatCompletionAccumulator
			for stream.Next() {
				if chunk := stream.Current(); !acc.AddChunk(chunk) {
					t.Fatalf("the accumulator refuses %s", chunk.RawJSON())
				}
			}
			ok(t, stream.Err())
			same(t, "the streamed text", first.Choices[0].Message.Content, acc.Choices[0].Message.Content)
			if acc.Usage.PromptTokensDetails.CachedTokens == 0 || acc.Usage.TotalTokens != first.Usage.TotalTokens {
				t.Errorf("accumulated %+v", acc.Usage)
			}
		})
		t.Run(name+": completions of several prompts", func(t *testing.T) {
			q := openai.CompletionNewParams{Model: "tiny", MaxTokens: openai.Int(5), Prompt: openai.CompletionNewParamsPromptUnion{OfArrayOfStrings: []string{"The tide", "The boats"}}}
			got, err := client.Completions.New(patient(t), q, endless)
			if ok(t, err); len(got.Choices) != 2 || got.Usage.CompletionTokens != 10 || got.Choices[1].Index != 1 {
				t.Errorf("%s", got.RawJSON())
			}
		})
		t.Run(name+": a stream that is given up", func(t *testing.T) {
			q := tide("Go on.")
			q.MaxTokens = openai.Int(800)
			stream := client.Chat.Completions.NewStreaming(patient(t), q, endless)
			if !stream.Next() {
				t.Fatal(stream.Err())
			}
			ok(t, stream.Close())
			answer, err := client.Chat.Completions.New(patient(t), tide("Short."))
			if ok(t, err); answer.Choices[0].FinishReason == "" {
				t.Errorf("%s", answer.RawJSON())
			}
		})
		t.Run(name+": what is refused", func(t *testing.T) {
			for want, change := range map[string]func(*openai.ChatCompletionNewParams){
				"n 2":           func(q *openai.ChatCompletionNewParams) { q.N = openai.Int(2) },
				"logprobs true": func(q *openai.ChatCompletionNewParams) { q.Logprobs = openai.Bool(true) },
				"top_p -1":      func(q *openai.ChatCompletionNewParams) { q.TopP = openai.Float(-1) },
			} {
				q := tide("s")
				change(&q)
				_, err := client.Chat.Completions.New(patient(t), q)
				if status(err) != http.StatusBadRequest || !strings.Contains(typed(err), want) {
					t.Errorf("%s: %s", want, typed(err))
				}
			}
			q := tide("s")
			q.Model = "gpt-5"
			if _, err := client.Chat.Completions.New(patient(t), q); status(err) != http.StatusNotFound {
				t.Errorf("another model: %s", typed(err))
			}
		})
	}
}
