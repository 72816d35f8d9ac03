// Package llamacpp is an [engines.Engine] for llama.cpp's server, llama-server. Chats go through package openai; what this
// package adds is knowledge of the server's cache, which is not paged and does not report what it drops.
//
// The server has slots (--parallel N). Each holds the keys and values of one token sequence; a prompt that comes to a slot
// keeps the prefix it has in common with that sequence and overwrites the rest. So the engine keeps the same sequences:
// it asks the server for the tokens of each prompt, chooses a slot, sends the request to that slot, and enters what the
// answer says. It knows before a request is sent how many of its tokens are cached ([Engine.Predict]), and reports to
// the subscribers whose prefix a request overwrites.
//
// # Which slot
//
// The server's own rule takes the slot with the largest part of the prompt, if that is more than a tenth of it, and so a
// conversation's slot for a prompt that only has the same system prompt. The engine takes the slot released longest ago
// unless another one has so much more of the prompt that it outweighs what is overwritten there; what that is worth it learns
// from how often prompts go on from slots as old. Where the server chooses ([Config].Unpinned) it is followed by its own rule.
//
// Types to know: [Config], [Engine], [Prediction], [Slot] (what the engine believes of a slot), [Stats] (how often it was
// right), [Info] and [Metrics] (what the server says of itself).
//
//	engine, err := llamacpp.New(llamacpp.Config{Server: openai.Config{BaseURL: "http://127.0.0.1:8080"}})
//	if err != nil { ... }
//	defer engine.Close()
//	engine.Subscribe(pilot.Sink(scope))
//	response, err := engine.Generate(ctx, engines.Request{ID: plan.RequestID, Messages: messages}, nil)
//
// # What is exact, and when
//
// With --cache-ram 0, a model with ordinary attention, and all traffic through one Engine, a prediction is the number that
// the server reports. Restarts are noticed before the next request is sent: a new process means a new connection, and
// /props then names another process.
//
// With the host prompt cache (--cache-ram, on by default) the server may load more than the slot holds: a prediction
// is then a lower bound. Requests of other clients, models with sliding windows or recurrent states, and context shifts
// make the server cache less than predicted; the engine sees it in the answer and looks at /slots before it goes on.
//
// No request fails because the engine could not look: it is sent all the same, without a prediction.
//
// # Slots in files
//
// With [Config].SlotDir a slot is saved to a file before a request overwrites it, and when the engine is closed; a file that has more of
// a prompt than its slot is restored first, where that takes less time than computing. A prediction counts that. The server is tried
// for it once for each of its processes, on the slot of the first request; [Info].Disk says whether it is used, and [ProbeSlotFiles] tries
// it alone. Needed are requests that are sent to slots ([Config].Unpinned is false, and the server has --parallel N, so that it does not
// empty idle slots) and a model whose layers all attend to everything. Files are for one model and one tenant
// (Server.Scope.Tenant); requests with a cache_salt leave none and get none. A file has what keys and values say of the prompts.
//
// # Compressed contexts
//
// [Config].Contexts are slot files that were not saved by a server but written by ragpilot compress --format llama-slot, or by
// local.WriteSlotFile: what a model needs of a corpus for a task. A request with the member "context" is answered behind one. Its
// prompt begins with tokens that stand for the context, which has no text; the server finds them in its cache once the file is
// restored.
//
// # Events
//
// Served after each complete answer. Shrunk and Gone for a request whose tokens another one overwrites, with what is left
// in any slot; when the server saved them in its host cache first, and that is known (see [Config].HostCache), Moved
// to [HostTier] instead. What is in a slot file is lost to the slot, and reported so. Cleared after a restart. Gone also for
// requests beyond [Config].MaxRequests, oldest first.
package llamacpp
