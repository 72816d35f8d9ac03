// Package openai asks a server for vectors by POST /v1/embeddings, as OpenAI, vLLM, SGLang, llama.cpp, Ollama and others
// serve it.
//
//	e, err := openai.New(openai.Options{URL: "http://localhost:8080/v1", Model: "bge-small-en-v1.5"})
//	vectors, err := e.EmbedDocuments(ctx, texts)
//
// [Embedder] is an embed.Embedder, and so fits wherever langchaingo's embeddings.Embedder does. Long lists are sent in
// batches, one after the other. An answer is a vector for each text, all of one length, or an error: what is missing, doubled or
// of another length is never passed on.
//
// errors.Is distinguishes the errors: [ErrUnauthorized], [ErrNoModel], [ErrTooLong], [ErrUnavailable], [ErrRefused],
// [ErrBadAnswer], embed.ErrCount and embed.ErrDimension. None of them contains the key.
package openai
