// Package proxy stands between the clients of an inference engine and the engine: it forwards /v1/* and makes the
// prompts that pass reuse what the engine has already read.
//
//	request ──> read     body.go      the messages of a body, and where their texts stand in its bytes
//	            plan     chat.go      new documents are ordered, those that were shown become references (package conversation)
//	            splice   edit.go      only the planned texts change; everything else keeps its bytes
//	            forward  upstream.go  streams pass as they arrive
//	            account  answer.go    what was cached, and how fast the answer came; usage.go reads the engine's report
//
// exchange.go has the types of these steps.
//
// What is not understood passes untouched. A text is only replaced by a reference to a text that stands further up in
// the same body. All state is kept apart by tenant (package tenant) and bounded.
//
// The wire shape is that of the ContextPilot 0.4.2 server; docs/compatibility.md lists the differences.
package proxy
