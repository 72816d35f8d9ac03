package golang_test

import (
	"net/http"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/ragpilot/ragpilot/ci/sdk/stage"
)

// numbered is a question whose answer "ragpilot bench upstream" makes from the seed.
func numbered(system string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: "sim", Seed: openai.Int(41), MaxTokens: openai.Int(20),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(system), openai.UserMessage("Why?")},
	}
}

// TestSimulated asks the simulated engine, a process of its own whose prefix cache is real.
func TestSimulated(t *testing.T) {
	t.Run("models", func(t *testing.T) {
		client := at(t, stage.Simulated).openai()
		page, err := client.Models.List(patient(t))
		if ok(t, err); len(page.Data) != 1 || page.Data[0].ID != "sim" {
			t.Errorf("models %+v", page.Data)
		}
	})
	t.Run("chat, whole and streamed, with cached tokens", func(t *testing.T) {
		q := numbered(passages("One passage of "+t.Name()+" which is long enough for a block of the cache, and then some.", "Another passage of it."))
		direct, sidecar := at(t, stage.Bench).openai(), at(t, stage.Simulated).openai()
		want, err := direct.Chat.Completions.New(patient(t), q)
		ok(t, err)
		got, err := sidecar.Chat.Completions.New(patient(t), q)
		ok(t, err)
		same(t, "the text", want.Choices[0].Message.Content, got.Choices[0].Message.Content)
		if u := got.Usage; u.PromptTokensDetails.CachedTokens == 0 || u.PromptTokens != want.Usage.PromptTokens || u.CompletionTokens != 20 {
			t.Errorf("usage %+v, without the sidecar %+v", u, want.Usage)
		}
		q.StreamOptions.IncludeUsage = openai.Bool(true)
		events, text, acc := chatEvents(t, at(t, stage.Simulated), q)
		if text != want.Choices[0].Message.Content || acc.Choices[0].Message.Content != text || acc.Choices[0].FinishReason != want.Choices[0].FinishReason {
			t.Errorf("streamed %q, accumulated %+v, whole %q", text, acc.ChatCompletion, want.Choices[0].Message.Content)
		}
		if len(events) < 20 || acc.Usage.PromptTokensDetails.CachedTokens == 0 {
			t.Errorf("%d events, usage %+v", len(events), acc.Usage)
		}
	})
	t.Run("documents in the system text are ordered, the cache is met", func(t *testing.T) {
		client := at(t, stage.Simulated).openai()
		_, d := results(t)
		_, err := client.Chat.Completions.New(patient(t), numbered(passages(d[0], d[1], d[2])))
		ok(t, err)
		var resp *http.Response
		got, err := client.Chat.Completions.New(patient(t), numbered(passages(d[2], d[0], d[1])), option.WithResponseInto(&resp))
		ok(t, err)
		if r := resultHeader(t, resp); !r.Reordered {
			t.Errorf("X-ContextPilot-Result %+v", r)
		}
		whole := got.Usage.PromptTokens
		if cached := got.Usage.PromptTokensDetails.CachedTokens; cached < whole/2 {
			t.Errorf("%d of %d prompt tokens were cached", cached, whole)
		}
	})
	t.Run("completions, whole and streamed", func(t *testing.T) {
		q := openai.CompletionNewParams{
			Model: "sim", Seed: openai.Int(7), MaxTokens: openai.Int(20), Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String(lines(t, 0, 10))},
		}
		direct, client := at(t, stage.Bench).openai(), at(t, stage.Simulated).openai()
		want, err := direct.Completions.New(patient(t), q)
		ok(t, err)
		got, err := client.Completions.New(patient(t), q)
		ok(t, err)
		if same(t, "the text", want.Choices[0].Text, got.Choices[0].Text); got.Usage.PromptTokensDetails.CachedTokens == 0 {
			t.Errorf("usage %+v", got.Usage)
		}
		stream := client.Completions.NewStreaming(patient(t), q)
		defer stream.Close()
		text := ""
		for stream.Next() {
			for _, c := range stream.Current().Choices {
				text += c.Text
			}
		}
		ok(t, stream.Err())
		same(t, "the streamed text", want.Choices[0].Text, text)
	})
	t.Run("400 and 404", func(t *testing.T) {
		for _, name := range []string{stage.Bench, stage.Simulated} {
			client := at(t, name).openai()
			q := numbered("s")
			q.MaxTokens = openai.Int(0)
			if _, err := client.Chat.Completions.New(patient(t), q); status(err) != http.StatusBadRequest {
				t.Errorf("%s: max_tokens 0: %s", name, typed(err))
			}
			_, err := client.Embeddings.New(patient(t), openai.EmbeddingNewParams{Model: "sim", Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("a")}})
			if status(err) != http.StatusNotFound {
				t.Errorf("%s: embeddings: %s", name, typed(err))
			}
		}
	})
}
