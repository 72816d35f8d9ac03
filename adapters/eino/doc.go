// Package eino puts a pilot between the retrievers and chat models of github.com/cloudwego/eino.
//
//	docs, err := eino.Retriever(pilot, inner).Retrieve(ctx, question)   // in the order that the cache has, labelled
//	answer, err := eino.ChatModel(pilot, llm).Generate(ctx, messages)   // messages that hold the documents' texts
//
// [Retriever] lays out what inner finds: the documents come back in another order, their Content as it belongs into the
// prompt (markup with a label). [ChatModel] finds these texts again in the last user message, adds the order hint behind
// them if they stand at the front of the prompt, gives them back the order in which they were found behind earlier messages, makes those of
// them references that earlier messages of the same conversation show (see
// [github.com/ragpilot/ragpilot/framework.WithConversation]), and reports the outcome of the request to the pilot. Both pass
// everything else through as it is, but for what has the form of a note in a tool's result, which is fenced; [WithToolResults] puts notes
// in place of results that an agent gets again. An error of the pilot's is never an error of the chain's.
package eino
