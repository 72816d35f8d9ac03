// Package sglang is an [engines.Engine] for SGLang. The chats go through engines/openai; this package adds what SGLang has
// beside them: request IDs (rid), cache salts for tenants, the prompt's tokens, its tokenizer, its metrics, and where its
// cache events are published.
//
// The client is the same for vLLM and SGLang. Types to know: [Config] and [Engine], [Features] (what this server can do, and how
// that is known), [Request] and [Response] (a chat with what [engines.Request] has no place for), [Metrics], [EventSource].
//
//	engine, err := sglang.New(sglang.Config{Server: openai.Config{BaseURL: "http://127.0.0.1:30000"}})
//	if err != nil { ... }
//	defer engine.Close()
//	features, err := engine.Detect(ctx)
//	response, err := engine.Chat(ctx, sglang.Request{
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
// Cached tokens are reported only with --enable-cache-report, metrics only with --enable-metrics. SGLang refuses to stream
// an answer that is asked for the prompt's tokens: such an answer comes in one piece. The directory engines/plugin has an
// SGLang plugin that reports evictions without events.
package sglang
