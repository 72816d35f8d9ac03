// Package adk puts a pilot in front of the models of Google's Agent Development Kit (google.golang.org/adk), and gives its agents
// a memory that is cheap to prefill.
//
//	llm := adk.Model(pilot, gemini, adk.ModelOptions{})       // for llmagent.Config
//	memories := adk.Memory(pilot, store, adk.MemoryOptions{}) // for runner.Config
//
// [Model] finds the blocks of plans that the pilot holds (see [github.com/ragpilot/ragpilot/framework.Offers]; the wrappers of
// retrievers do that) in the last message of the user, makes those references that the conversation shows already (see
// [github.com/ragpilot/ragpilot/framework.WithConversation], for the context that the runner is given), and reports the
// outcome of the request to the pilot. What has the form of a note in a function's response is fenced; with ModelOptions.ToolResults notes
// stand in place of responses that an agent gets again. [Memory] keeps sessions in a [github.com/ragpilot/ragpilot/memory.Store]
// and gives recalled memories in the order that the engine's cache has, without times and scores, which would make equal memories
// unequal.
package adk
