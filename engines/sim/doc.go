// Package sim is an inference server without a model: an [engines.Engine] in process whose prefix cache is real and whose
// answers and times are made up. It is for tests, examples and for replaying traces without a GPU.
//
// The cache works like vLLM's: the prompt is cut into blocks of 16 tokens, each block is keyed by its tokens and
// everything before it, a prompt reads the longest run of cached blocks from its start (never its very last
// token), and blocks are taken back least recently used first, the end of a prompt before its beginning. It finds what
// a vLLM 0.32.0 server reported for eleven recorded requests, with hits, evictions and a reset. [Options] says
// what is configurable, [Cost] how times are modelled, [Fault] how to make requests fail, [Stats] what is counted.
//
//	engine := sim.New(sim.Options{CapacityTokens: 200_000})
//	cancel := engine.Subscribe(pilot.Sink(contextpilot.Scope{}))
//	defer cancel()
//	response, err := engine.Generate(ctx, request, nil)
//	fmt.Println(response.Usage.CachedTokens, response.TTFT)
//
// [Server] is the same cache behind a scheduler, in virtual time: requests wait for each other and share the engine's
// steps, whose times follow a [StepCost]. It can have slower [Tiers] behind its cache, and admit requests in another [Order].
// Package internal/lab/load replays traces on it.
//
// # What a prompt is
//
// A request's prompt is the concatenation of the tokens of its messages' contents, cut as package internal/prompt/tokens
// says: no token reaches from one message into the next, and there are no tokens for roles. The answer's tokens
// follow the prompt in the cache, except for the last one, for which a real engine computes no KV entry. Send the
// answer back as the next message and the conversation so far is a prefix of the next prompt. The model's name,
// temperature, and further members and headers of a request are ignored.
//
// # What it reports
//
// Subscribers get what a real engine's eviction messages say, already per request: Shrunk or Gone when
// blocks of a finished request's prompt or answer were evicted, Served when an answer is complete, Cleared on Reset. A
// request that became resident again because another request computed the same blocks is not reported: what was
// reported stays a lower bound. A request that left nothing in the cache (too large for it, or overtaken by Reset) is Gone
// right after it was Served. A request whose answer broke off is not Served, but its prompt is in the cache and its
// later evictions are reported.
//
//	Generate ──> prompt blocks ──> cache ──> pool      which block is free, pinned, oldest
//	                                 ├─────> index     which key is in which block, which key follows which
//	                                 └─────> tracker   which request ends at which key ──> events
package sim
