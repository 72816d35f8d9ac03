// Package openai is an [engines.Engine] for every server that speaks the OpenAI chat API: vLLM, SGLang,
// llama.cpp, and hosted services. It uses net/http and no SDK, because it needs what SDKs hide: members of the
// body that only one engine knows, the cached-token count of an answer, and exact control of when a request
// may be repeated.
//
// Types to know: [Config] and [Engine] (chat completions, always streamed), [StatusError] (what a server said
// when it refused), [Tokenizer] (counts tokens with the engine's own /tokenize).
//
//	engine, err := openai.New(openai.Config{BaseURL: "http://127.0.0.1:8000", Model: "llama"})
//	if err != nil { ... }
//	defer engine.Close()
//	response, err := engine.Generate(ctx, engines.Request{
//		ID:       plan.RequestID,
//		Messages: []engines.Message{{Role: engines.User, Content: prompt}},
//	}, nil)
//
// # When a request is repeated
//
// A request is sent again only while the engine cannot have begun to answer: no connection, a pooled connection
// that the server had already closed, or one of the statuses 429, 502, 503 and 504. Once the status was 200
// nothing is ever repeated; the answer is complete or wraps [engines.ErrInterrupted].
//
// # Caveats
//
// vLLM reports cached tokens only with --enable-prompt-tokens-details, SGLang only with --enable-cache-report;
// without them [engines.Usage] has CachedKnown false. An OpenAI-compatible server does not report evictions on
// this connection, so [Engine.Subscribe] delivers Served only.
package openai
