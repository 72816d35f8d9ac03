package langchain_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/retriever"
)

// blockEngine keeps the requests.
type blockEngine struct{ requests []engines.Request }

func (*blockEngine) Name() string { return "blocks" }

func (e *blockEngine) Generate(_ context.Context, req engines.Request, _ func(string) error) (engines.Response, error) {
	e.requests = append(e.requests, req)
	return engines.Response{Text: "yes"}, nil
}

func (*blockEngine) Subscribe(func(...contextpilot.Event)) func() { return func() {} }

// documents is a retriever of fixed texts.
type documents []string

func (d documents) GetRelevantDocuments(context.Context, string) ([]schema.Document, error) {
	var out []schema.Document
	for _, text := range d {
		out = append(out, schema.Document{PageContent: text})
	}
	return out, nil
}

// TestBlocksReachTheEngine: the engine of a chain learns where each block stands, and nothing else stands there.
func TestBlocksReachTheEngine(t *testing.T) {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	engine := &blockEngine{}
	texts := documents{"The tide é is high.", "The tide é is high. The boats are in.", "The light is out."}
	qa := chains.NewRetrievalQAFromLLM(langchain.Wrap(pilot, langchain.Model(engine)), retriever.Wrap(pilot, texts))
	if _, err := chains.Run(t.Context(), qa, "Is it high?"); err != nil {
		t.Fatal(err)
	}
	req := engine.requests[0]
	var got []string
	for _, b := range req.Blocks {
		got = append(got, req.Messages[b.Message].Content[b.From:b.To])
	}
	if len(got) != len(texts) {
		t.Fatalf("blocks %q of %q", got, req.Messages)
	}
	for i, text := range got {
		if !slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(text, s) }) || strings.Contains(text, "Is it high?") {
			t.Errorf("block %d is %q", i, text)
		}
	}
}

// TestWithContext: the name of a compressed context goes with every call.
func TestWithContext(t *testing.T) {
	engine := &blockEngine{}
	for _, c := range []struct {
		options []langchain.ModelOption
		want    string
	}{{[]langchain.ModelOption{langchain.WithContext("handbook")}, `"handbook"`}, {nil, ""}} {
		if _, err := llms.GenerateFromSinglePrompt(t.Context(), langchain.Model(engine, c.options...), "Is it high?"); err != nil {
			t.Fatal(err)
		}
		if got := string(engine.requests[len(engine.requests)-1].Extra["context"]); got != c.want {
			t.Errorf("context %s, want %s", got, c.want)
		}
	}
}
