// Package retriever puts a pilot behind any langchaingo retriever: the documents come back in the order, and in the
// markup, that lets the engine reuse its prefix cache.
//
//	qa := chains.NewRetrievalQAFromLLM(
//		langchain.Wrap(pilot, llm),
//		retriever.Wrap(pilot, vectorstores.ToRetriever(store, 15)))
//	answer, err := chains.Run(framework.WithConversation(ctx, "thread-7"), qa, question)
//
// [Wrap] asks the inner retriever, plans, and gives the plan's blocks as documents: a chain joins their texts, so
// what the model is to see must be in PageContent. The order hint is in none of them: engines/langchain adds it behind the documents
// where all of them stand at the front of one prompt. The plan is held by the pilot until that package finds its blocks in a
// prompt.
//
// What the user of a chain gets as source documents are these documents too. [Sources] gives the retrieved ones back:
// original text, original order, and those that were left out.
//
// # Conversations
//
// Whether a block of an earlier turn is still in front of the model is known only to what sends the messages. So
// every document is given in full; references in place of repeats are made by the model wrapper, which sees the
// messages. For the same reason the retrieval does not count as a turn of the conversation before that wrapper has
// seen it: a retrieval whose documents are never sent leaves the conversation as it was.
//
// # Faults
//
// An error of the inner retriever is returned. A fault of the planning is not an error: the documents come in
// retrieval order, see [contextpilot.Plan.Fault].
package retriever
