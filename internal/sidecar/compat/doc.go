// Package compat answers the reference server's own endpoints: /reorder and its aliases, /deduplicate, /evict, /reset,
// /search, /insert, and the endpoints for health and counts. The proxy under /v1 is another package; [API.Track],
// [API.RecordTTFT] and [API.HasIndex] are what it needs from here.
//
//	api := compat.New(compat.Options{})
//	http.ListenAndServe("127.0.0.1:8765", api)
//
// Clients of ContextPilot 0.4.2 find its names, numbers and errors; docs/compatibility.md lists where we differ and why.
// What it gets wrong is not followed: a context is never given another one's request ID or history, nothing of a context
// is lost, and no request waits for another one's clustering.
//
// # State
//
// Each tenant has an index, conversation histories and times of its own:
//
//	API ─► state (one a tenant, LRU) ─► generation: recorded.Index + numbers of its documents   (a /reset begins a new one)
//	                                 ├► recorded.Chains: who was shown what, by request ID
//	                                 └► times to the first token
//
// A state has one lock. It is held for some milliseconds at most: longer work lets others in between, and
// clusters without it. Every table is bounded; the oldest entries leave.
package compat
