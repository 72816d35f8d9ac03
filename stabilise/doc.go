// Package stabilise keeps the beginnings of prompts as they were, so that engines find them in their prefix cache. Programs often change
// there what could stay: the order of tools, the order of a schema's members, a line with the time, memories that were found for the last
// question. Each rule mends one of these, and is off unless it is switched on.
//
//	s, err := stabilise.New(stabilise.Config{Rules: stabilise.Rules{Tools: true, Schemas: true, Volatile: true}})
//	sent := s.Body(stabilise.Chat, stabilise.Conversation{Name: "thread-7"}, body) // the bytes of a request
//	post(sent.Body)
//
// [Stabiliser.Body] is for bodies of /v1/chat/completions, /v1/messages and /v1/responses. [Apply] does the same for the messages of a
// framework, and [Stabiliser.Order] and [Stabiliser.Schema] for its tools.
//
// # Where lines go
//
// A line that leaves the system text (rules volatile and memories) stands behind the last message that is not the assistant's: as a system
// message of its own, or as a note "[from the system text: …]" in a user message, see [Place]. When the conversation goes on it stays
// there, and the new turn has its own. So earlier turns never change. A text that is the latest of its kind in the conversation is not
// sent twice.
//
// What stood where is remembered by the messages up to there, within a bound. After a restart, or on another replica, earlier turns have no
// such lines: the model then sees the present ones only, as it would without this package.
//
// # Whose lines
//
// Conversations that begin alike cannot be distinguished by their messages. The time of another conversation does no harm; memories and
// lines that the operator has declared could. So without a name of the conversation or of the user these are only repeated in earlier turns
// if this request has the same text in its own system text.
//
// # Trust
//
// No text gains trust. Lines are taken from the system text alone, and not from what may be a document in it. Where notes are used, a text
// of a user, an assistant or a tool that has the form of one is fenced, see docs/markup.md.
package stabilise
