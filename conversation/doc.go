// Package conversation decides what of a conversation is sent, and in which order: documents at the front are put where the
// engine's cache has their beginning, and texts that stand further up are replaced by a note.
//
//	message.go   roles, texts, the Source that a front end implements, edits
//	engine.go    Options, New, Forget
//	begin.go     the loop: what is remembered, then message by message
//	remember.go  links of conversations, and what is forgotten first
//	place.go     orders at the front, and what is sent again
//	replace.go   documents, whole results, rows of lines
//	fence.go     foreign texts in the form of our notes
//	prompts.go   what the engine holds, by its IDs
//	mode.go      dry runs, and requests that pass as they came
//	done.go      outcomes
//	trim.go      Trimmer, which cuts histories to an engine's window; cut.go says where
//
// A front end makes a [Source] of its messages, calls [Engine.Begin], applies the edits, and calls [Forward.Done] when the answer has
// ended.
//
// Edits follow from the bytes of the messages alone; only chosen orders are remembered, in memory or in a store that replicas
// share. So a conversation that is sent again, after a restart too, is sent with the same bytes.
package conversation
