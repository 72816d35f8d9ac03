// Package minilm is the sentence model all-MiniLM-L6-v2 in pure Go: text in, 384 numbers out, with no server, no cgo and no
// key.
//
//	vectors, err := minilm.Default().EmbedDocuments(ctx, texts) // fetched once: 83 MB into the user's cache folder
//
// [Pull] and [Open] do that step by step, [NewLazy] with other options. [Model] and [Lazy] are embed.Embedders, and so fit
// wherever langchaingo's embeddings.Embedder does. The vectors have length 1 and differ from those of a computation in 64
// bits by 1e-5 at most. They do not depend on which texts are embedded together.
//
// Only the first [MaxTokens] tokens of a text are read, about 190 English words. Split longer texts.
//
// The model was trained on English. It costs one millisecond for each token on one core of amd64 with AVX2, and two
// elsewhere (docs/memory.md has the figures): thousands of texts, not millions. For more, ask a server with embed/openai.
package minilm
