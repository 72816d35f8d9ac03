package retriever_test

import (
	"context"
	"runtime"
	"slices"
	"testing"

	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// literal finds the same documents for every question.
type literal []schema.Document

func (l literal) GetRelevantDocuments(context.Context, string) ([]schema.Document, error) {
	return slices.Clone(l), nil
}

// failing cannot be asked.
type failing struct{ err error }

func (f failing) GetRelevantDocuments(context.Context, string) ([]schema.Document, error) {
	return []schema.Document{{PageContent: "half a result"}}, f.err
}

// doc is a document with an ID.
func doc(id, text string) schema.Document {
	return schema.Document{PageContent: text, Metadata: map[string]any{"id": id}, Score: 0.5}
}

func newPilot(t testing.TB, cfg contextpilot.Config) *contextpilot.Pilot {
	t.Helper()
	if cfg.Notes.Hint == contextpilot.HintAuto {
		cfg.Notes.Hint, cfg.Notes.AlwaysHint = contextpilot.HintFull, true // short texts would not earn a note
	}
	pilot := testkit.Must(contextpilot.New(cfg))(t)
	offers := framework.OffersOf(pilot) // a wrapper that is not used any more keeps none
	t.Cleanup(func() { runtime.KeepAlive(offers) })
	return pilot
}

func get(ctx context.Context, t testing.TB, r schema.Retriever) []schema.Document {
	t.Helper()
	return testkit.Must(r.GetRelevantDocuments(ctx, "a question"))(t)
}

// texts returns the documents' texts.
func texts(docs []schema.Document) []string {
	return testkit.Map(docs, func(d schema.Document) string { return d.PageContent })
}
