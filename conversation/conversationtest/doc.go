// Package conversationtest says what must become of a conversation on its way to a model, whichever front end it takes: a
// sidecar's dialects, the wrapper of a framework, a program of one's own.
//
//	report, err := conversationtest.Read(sent, arrived) // what became of each text
//	err = conversationtest.Targets(report)              // one of the invariants
//
//	func TestScript(t *testing.T) { // all front ends play one conversation
//		conversationtest.Run(t, newFrontend, nil)
//	}
//
// [Read] compares the messages that a caller has sent with those that arrived at the model. It knows the markup, the notes and the fences
// by code of its own, so that it does not share a mistake with what it reads; and it trusts no note: a document that is not sent must
// stand in full where a note says, or the text is lost. It understands what [Run] plays and texts like these, not everything that clients
// may send.
package conversationtest
