// Package standin has what a program would have of its own, a model and a store, so that examples run without network and
// key.
package standin

import (
	"context"
	"embed"
	"strings"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/retriever/bleve"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// Model is a langchaingo model over the simulator: its prefix cache is real, its answers are scripted.
type Model struct {
	llms.Model
	engine *sim.Engine
}

// NewModel returns a model that answers with what reply makes of the last message.
func NewModel(reply func(prompt string) string) *Model {
	engine := sim.New(sim.Options{Reply: func(req engines.Request) string {
		return reply(req.Messages[len(req.Messages)-1].Content)
	}})
	return &Model{langchain.Model(engine), engine}
}

// Prompted returns the prompt tokens of all requests so far.
func (m *Model) Prompted() int { return m.engine.Stats().PromptTokens }

// Computed returns those of them that were not in the cache.
func (m *Model) Computed() int { return m.engine.Stats().PromptTokens - m.engine.Stats().HitTokens }

// Rephrase is a script for langchaingo's ConversationalRetrievalQA: asked for a standalone question, the model gives the
// follow-up question as it is; asked to answer, it says yes.
func Rephrase(prompt string) string {
	if _, rest, ok := strings.Cut(prompt, "Follow Up Input: "); ok {
		question, _, _ := strings.Cut(rest, "\n")
		return question
	}
	return "Yes."
}

//go:embed notes
var notes embed.FS

// Notes returns a retriever of the k best of six notes on a canal lock, and what closes its index.
func Notes(k int) (documents schema.Retriever, done func(), err error) {
	index, err := bleve.OpenStore(bleve.StoreOptions{})
	if err != nil {
		return nil, nil, err
	}
	files, err := notes.ReadDir("notes")
	if err != nil {
		return nil, nil, err
	}
	docs := make([]store.Document, len(files))
	for i, f := range files {
		text, err := notes.ReadFile("notes/" + f.Name())
		if err != nil {
			return nil, nil, err
		}
		docs[i] = store.Document{ID: f.Name(), Text: strings.TrimSpace(string(text))}
	}
	if err := index.Upsert(context.Background(), docs); err != nil {
		return nil, nil, err
	}
	return store.NewRetriever(index, store.Query{K: k}), func() { _ = index.Close() }, nil
}
