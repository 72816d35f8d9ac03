// Package langchain connects models of langchaingo with a pilot, and engines with langchaingo.
//
//	qa := chains.NewRetrievalQAFromLLM(
//		langchain.Wrap(pilot, llm),
//		retriever.Wrap(pilot, inner))
//	answer, err := chains.Run(contextpilot.WithConversation(ctx, "thread-7"), qa, question)
//
// [Wrap] is the other half of retriever.Wrap. It looks for a plan's blocks in the last human message of each request.
// A request without them passes through as it is: a chain's question about the history, a map step, an
// agent's next step. For a request with them it tells the pilot what becomes of it: answered, with the cached tokens
// that the model reports, or never sent. It ties the plan's request ID to the call, see [RequestID].
//
// [Model] makes any [github.com/ragpilot/ragpilot/engines.Engine] a model, a simulator included.
//
// # References
//
// If the messages in front of the question show blocks of this conversation, these blocks need not be sent again. The
// wrapper then plans with what really stands in the messages and replaces the part of the text from the first
// block to the hint, and only that part. The caller's messages are not changed: the caller goes on with the full text,
// and the wrapper repeats what it sent for as long as the messages up to there are the same. Otherwise the
// engine would see another history in every turn and find nothing in its cache. Calls without a conversation in their
// context (see [contextpilot.WithConversation]) get no references.
//
// The chains of langchaingo do not resend documents, so under them every block is sent in full in every turn.
//
// # Retries
//
// A call that fails before the first piece of the answer is taken back. Sent again with the same messages it
// passes through; asked again through the retriever it is planned again.
package langchain
