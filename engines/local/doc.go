// Package local is an engine in the program's own process: a small language model of the Llama family, read from a file, that is
// computed on the processor and has a true prefix cache.
//
//	engine, err := local.Open(local.Config{Model: "SmolLM2-135M-Instruct.Q4_1.gguf"})
//	…
//	defer engine.Close()
//	response, err := engine.Generate(ctx, engines.Request{Messages: []engines.Message{{Role: engines.User, Content: "Hello"}}}, nil)
//
// Package local/model fetches a model that is small enough for any machine. Models are GGUF files of the architectures
// llama, qwen2 and qwen3.
//
// # What is exact
//
// A prompt's logits are the same, bit for bit, whether it is computed in one go, in pieces, on top of what the cache has, beside other
// requests or on more threads. A greedy answer therefore does not depend on what the cache held. The kernels are the exception:
// on amd64, on a processor with AVX2, sums have another order than elsewhere. [Engine.Name] says which.
//
// # The cache
//
// Keys and values lie in pages of 16 tokens, up to [Config].CacheBytes, and are found again by what vLLM calls prefix
// caching: whole pages with the same tokens from the prompt's first on, for requests with the same cache_salt. What is
// used least recently goes first. Subscribers learn what each request has lost, as from the engines behind HTTP;
// [Config].OnCache has the blocks themselves.
//
// # Not for speed
//
// A good engine for a GPU is a thousand times faster. This one is for examples, for tests that need a real model, and for
// measuring what an ordering does to answers ([Engine.Score]).
package local
