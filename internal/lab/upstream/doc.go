// Package upstream is an OpenAI-compatible inference server without a model, for tests and for measuring what stands in
// front of one. Its answers are made up; its prefix cache is real, that of package engines/sim. It is what
// `ragpilot bench upstream` serves.
//
//	server := httptest.NewServer(upstream.New(upstream.Options{CapacityTokens: 200_000}))
//	defer server.Close()
//
// It answers POST /v1/chat/completions and /v1/completions, streamed and not, GET /v1/models and GET /health. Usage has
// prompt_tokens_details.cached_tokens. A request's ID is the header X-Request-Id, else the body's request_id, else
// its rid, and the answer's ID is that behind "chatcmpl-" or "cmpl-", as vLLM has it. Members it does not know are
// ignored. [Options] sets how long answers are, what is in them and when they come.
//
// [Options].Evict receives what the cache loses; a [Poster] sends it to a sidecar's POST /evict.
//
// # What a prompt is
//
// Tools come first, then each message's text and behind it its tool calls, all as package engines/sim cuts them into
// tokens: no token reaches from one into the next, and there are none for roles. Text parts of one message are joined by line
// feeds. A prompt of token IDs is a text of these numbers; each is one token if it has at most six digits.
//
// # Caveats
//
// Only the first choice is made, whatever n asks for. There is no queueing but for room in the cache: a request is
// answered as fast however many run beside it. The stub ([Options].Stub) looks for "stream": true anywhere in the body
// instead of decoding it.
package upstream
