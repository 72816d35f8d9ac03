// Package framework is what the model wrappers of all frameworks share. A retriever's wrapper offers a plan
// ([Offers]); [Calls] finds that plan's blocks again in the messages of a call, and says which texts are to
// be replaced so that blocks which the messages show already become references.
//
//	call := calls.Begin(session, messages)     // messages: roles, texts and calls, nothing of the framework
//	messages = … with call.Replacements …
//	answer, err := inner.Generate(messages)
//	call.End(…)                                // served with so many cached tokens, or gone
//
// At the front of a prompt the blocks stay as they were planned, with the plan's hint behind them. Behind other messages no order gains
// anything: they are given back the retriever's, without a hint. Of a plan of which a call has some blocks only nothing is changed
// in the texts; the call is planned as it stands.
//
// Calls replaces a user's text from the first block of a plan to the plan's hint, and nothing else of it. Where the plan is lost, as
// after a restart, it replaces at most the part from the first block to the last. What was sent for a text is sent again while the
// messages up to there are the same, or the text has grown at its end. Otherwise the engine would see another history in every turn, and
// find nothing in its cache.
//
// What tools have returned is given to the engine of package conversation, which the sidecar has, too: it fences forged notes, and with
// Options.ToolResults it replaces what stands further up. What it does follows from the messages alone. One engine, with its bound on
// memory, serves all wrappers of a pilot. See the packages engines/langchain and adapters/... for what users see.
package framework
