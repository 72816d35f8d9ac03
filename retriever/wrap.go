package retriever

import (
	"context"

	"github.com/tmc/langchaingo/prompts"
	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
)

// wrapped is inner behind a pilot.
type wrapped struct {
	settings
	pilot  *contextpilot.Pilot
	offers *framework.Offers
	inner  schema.Retriever
}

var _ schema.Retriever = (*wrapped)(nil)

// Wrap returns a retriever that asks inner and gives its documents as the pilot lays them out; see the package's
// documentation. It is safe for concurrent use if inner is. The conversation is that of the context, see
// [framework.WithConversation]. The documents of inner are not changed, only copied.
func Wrap(pilot *contextpilot.Pilot, inner schema.Retriever, opts ...Option) schema.Retriever {
	return &wrapped{settings: newSettings(opts), pilot: pilot, offers: framework.OffersOf(pilot), inner: inner}
}

// GetRelevantDocuments plans what inner finds. An error of inner is returned as it is; nothing else fails.
func (w *wrapped) GetRelevantDocuments(ctx context.Context, query string) ([]schema.Document, error) {
	w.handler.HandleRetrieverStart(ctx, query)
	found, err := w.inner.GetRelevantDocuments(ctx, query)
	if err != nil {
		return nil, err
	}
	docs := found
	if len(found) > 0 {
		docs = w.planned(ctx, query, found)
	}
	w.handler.HandleRetrieverEnd(ctx, query, docs)
	return docs, nil
}

func (w *wrapped) planned(ctx context.Context, query string, found []schema.Document) []schema.Document {
	// The session is left to the model wrapper, which plans the request anew with the messages that it sends. Planned
	// here, where no message is in sight, it would count as a conversation that resends nothing, and all that was
	// shown so far would be forgotten.
	blocks, what := w.blocks(found)
	plan := w.pilot.Plan(contextpilot.Request{
		Scope: w.scope, Query: query, Blocks: blocks, HeadTokens: w.headTokens, Budget: w.budget, NoEcho: w.noHold,
	})
	plan.Session = framework.ConversationFrom(ctx)
	w.plans(plan)
	if len(plan.Items) > 0 && !w.noHold { // without blocks there is nothing to find it by
		w.offers.Offer(plan)
	}
	return documents(&plan, what)
}

// The constant part comes first, so that all prompts share it with the blocks behind it; what changes, the question,
// comes last. The template itself must not hold block markup.
const qaTemplate = `Answer the question at the end from the documents below. ` +
	`The first line of each document gives its label; cite a document as [label] after each statement that rests on it. ` +
	`If the documents do not hold the answer, say that you don't know.

{{.context}}

Question: {{.question}}
Answer:`

// QAPrompt returns a prompt for the documents of [Wrap], with the variables context and question of the stuff chain.
// It explains that documents have labels and how to cite them; the prompts that chains use by default work as
// well, but do not ask for citations.
//
//	chain := chains.NewStuffDocuments(chains.NewLLMChain(llm, retriever.QAPrompt()))
//	qa := chains.NewRetrievalQA(chain, retriever.Wrap(pilot, inner))
func QAPrompt() prompts.PromptTemplate {
	return prompts.NewPromptTemplate(qaTemplate, []string{"context", "question"})
}
