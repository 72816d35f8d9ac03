// Package standin has what a program would have of its own, a model and a store, so that examples run without network and
// key.
package standin

import (
	"context"
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

// Notes returns a retriever of the k best of six notes on a canal lock, and what closes its index.
func Notes(k int) (documents schema.Retriever, done func(), err error) {
	index, err := bleve.OpenStore(bleve.StoreOptions{})
	if err != nil {
		return nil, nil, err
	}
	docs := make([]store.Document, 0, len(notes()))
	for id, text := range notes() {
		docs = append(docs, store.Document{ID: id, Text: text})
	}
	if err := index.Upsert(context.Background(), docs); err != nil {
		return nil, nil, err
	}
	return store.NewRetriever(index, store.Query{K: k}), func() { _ = index.Close() }, nil
}

func notes() map[string]string {
	return map[string]string{
		"gates.md": "The lock has two pairs of gates. The upper gates are opened only when the chamber is full, the lower gates only when it is empty; " +
			"whoever opens them by force breaks the beams, and the lock is closed for a week. The gates are moved by leaning on the beam, with the back " +
			"to it and both feet on the raised bricks. Nobody stands in the bend of a beam while a boat comes in. After the last boat of the day all gates " +
			"are closed, and the chamber is left empty.",
		"paddles.md": "Paddles let water into the chamber and out of it. They are wound up by hand, slowly and to the half first, because a boat in an empty " +
			"chamber is thrown against the gates by too much water at once. When the boat lies still, they are wound up whole. Before the gates are opened " +
			"the water must be level on both sides; the gates tell it, as they move by themselves. Paddles are wound down again, never dropped.",
		"keeper.md": "The keeper is at the lock from six in the morning to nine in the evening and works the gates for boats that carry goods. Others work " +
			"gates and paddles themselves; the keeper lends them a windlass for it and takes it back at the other end of the flight. What the keeper says " +
			"about the turn of boats counts. The keeper writes down each filling of the chamber, for the engineer who counts the water of the summit.",
		"boats.md": "Boats of up to twenty metres fit into the chamber, two narrow ones beside each other. Those that go down have the right of way when the " +
			"chamber is full, those that go up when it is empty, and boats that carry goods before all others. In the chamber boats are held by two ropes, " +
			"which somebody on board gives out or takes in; they are not tied. Engines are stopped until the gates are open.",
		"drought.md": "In a dry summer the lock is worked at ten, at two and at six only, and only with a full load of boats: each filling of the chamber takes a " +
			"hundred and fifty tons of water from the summit. Boats wait below the lower gates and go up together. If the summit falls below the mark, the " +
			"keeper closes the lock, and boats that carry goods are unloaded at the lower quay.",
		"windlass.md": "A windlass is the crank that winds up the paddles. It is never left on the spindle: when the pawl slips, the paddle falls, and the " +
			"windlass turns fast enough to break an arm. There are two sizes of spindle on this canal; the larger end fits the paddles of the gates, the " +
			"smaller one those of the ground. A windlass that fell into the chamber is found with the magnet that hangs in the hut.",
	}
}
