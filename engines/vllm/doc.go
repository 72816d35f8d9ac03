// Package vllm is an [engines.Engine] for vLLM. The chats go through engines/openai; this package adds what vLLM has
// beside them: request IDs that come back in its cache events, cache salts for tenants, the prompt's tokens, its
// tokenizer, its metrics, and where its cache events are published.
//
// The client is the same for vLLM and SGLang. Types to know: [Config] and [Engine], [Features] (what this server can do, and how
// that is known), [Request] and [Response] (a chat with what [engines.Request] has no place for), [Metrics], [EventSource].
//
//	engine, err := vllm.New(vllm.Config{Server: openai.Config{BaseURL: "http://127.0.0.1:8000"}})
//	if err != nil { ... }
//	defer engine.Close()
//	features, err := engine.Detect(ctx)
//	response, err := engine.Chat(ctx, vllm.Request{
//		Request: engines.Request{ID: plan.RequestID, Messages: messages},
//		Tenant:  "team-a",
//	}, nil)
//
// # What is sent to which version
//
// New contacts no server. What only some releases understand is sent after [Engine.Detect] has found it in the server's
// own schema or, where the server hides that, in its version; before that, and on a server of an unknown version, it is
// left out. The request's ID and a tenant's salt are always sent: releases that do not know them ignore them.
//
// # Caveats
//
// Cached tokens are reported only with --enable-prompt-tokens-details. Cache events leave the engine only with its next
// step, also those of a reset; [Engine.ResetCache] therefore reports Cleared itself. Events show the salts of tenants:
// treat the event stream as secret. The directory engines/plugin has a vLLM plugin that reports evictions without events.
package vllm
