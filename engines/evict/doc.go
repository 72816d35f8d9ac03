// Package evict receives what engines and their plugins report about requests whose cached prompts were given up
// (POST /evict), and turns it into events for a pilot. It also has the rule by which an engine's name for a request is
// brought back to the ID that it was sent with ([Match]).
//
// Types to know: [Handler] (the endpoint), [Registry] (which requests were sent, and for which cache), [Report] (what a
// body says).
//
//	requests := evict.NewRegistry(0)
//	http.Handle("/evict", evict.New(evict.Options{Requests: requests, Observe: pilot.Observe}))
//	...
//	requests.Add(plan.RequestID, scope) // before it is sent
//
// # The body
//
//	{"request_ids":["req-a"],"prefixes":[{"request_id":"req-b","resident_tokens":192}]}
//
// request_ids are requests of which nothing is cached any more: [contextpilot.Gone]. prefixes are requests of whose prompt
// and answer only the first tokens are left: [contextpilot.Shrunk]. Either member may be missing; others are ignored.
//
// # Caveats
//
// Whoever can post here can make the index forget, which costs hits and never answers: do not serve it to the world. A
// report is about IDs, so an ID that another request has, followed by '-' and more, can be taken for it.
package evict
