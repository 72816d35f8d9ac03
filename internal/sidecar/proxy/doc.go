// Package proxy stands between the clients of an inference engine and the engine: it forwards /v1/* and makes the
// prompts that pass reuse what the engine has already read.
//
//	request ──> read      body.go      the messages of a body, and where their texts stand in its bytes
//	            remember  memo.go      what was sent for the same messages before is sent again, byte for byte
//	            plan      plan.go      new documents are ordered, those that were shown become references
//	            splice    edit.go      only the planned texts change; everything else keeps its bytes
//	            forward   upstream.go  streams pass as they arrive; usage.go reads the engine's report at their end
//
// What is not understood passes untouched. A text is only replaced by a reference to a text that stands further up in
// the same body. All state is kept apart by tenant (package tenant) and bounded.
//
// The wire shape is that of the ContextPilot 0.4.2 server; docs/compatibility.md lists the differences.
package proxy
