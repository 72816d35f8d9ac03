package retriever

import "github.com/tmc/langchaingo/prompts"

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
