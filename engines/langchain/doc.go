// Package langchain connects models of langchaingo with a pilot, and engines with langchaingo.
//
//	qa := chains.NewRetrievalQAFromLLM(
//		langchain.Wrap(pilot, llm),
//		retriever.Wrap(pilot, inner))
//	answer, err := chains.Run(framework.WithConversation(ctx, "thread-7"), qa, question)
//
// [Wrap] is the other half of retriever.Wrap. It looks for a plan's blocks in the last human message of each request.
// A request without them passes through as it is, but for results of tools: a chain's question about the history, an agent's
// next step. For a request with them the pilot learns what becomes of it: answered, with the cached tokens
// that the model reports, or never sent. It ties the plan's request ID to the call, see [RequestID].
//
// # Order
//
// An order gains something only at the front of a prompt, where others begin with the same blocks. There the blocks stay as the
// retriever's wrapper has laid them out, and the order hint follows on the line behind them if it pays. Behind messages they are
// given back the order in which they were retrieved, and there is no hint. A request with some of a plan's blocks, such as a step of a
// chain that maps over documents, passes through as it is: it is planned as it stands, under a request ID of its own, and the whole
// plan leaves the index.
//
// [Model] makes any [github.com/ragpilot/ragpilot/engines.Engine] a model, a simulator included.
//
// # References
//
// If the messages in front of the question show blocks of this conversation, these blocks need not be sent again. The
// wrapper then plans with what really stands in the messages and replaces the part of the text from the first
// block to the last, and only that part. The caller's messages are not changed: the caller goes on with the full text,
// and the wrapper repeats what it sent for as long as the messages up to there are the same, or the text has only grown at its
// end. Otherwise the engine would see another history in every turn and find nothing in its cache. References follow from the
// messages. Name the conversation in the context (see [framework.WithConversation]) where several run at a time that may retrieve
// the same documents, and for citations.
//
// The chains of langchaingo do not resend documents, so under them every block is sent in full in every turn.
//
// # Tools
//
// A tool's result must not be able to say what was shown: what has the form of a note in it is fenced, see docs/markup.md. With
// [WithToolResults] results that an agent gets again become notes, whatever the context says: this follows from the messages alone.
//
// # Retries
//
// A call that fails before the first piece of the answer is taken back. Sent again with the same messages it
// passes through; asked again through the retriever it is planned again.
package langchain
