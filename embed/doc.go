// Package embed turns texts into vectors: the [Embedder] interface, an embedder that needs no model, and wrappers that
// cache, batch, check and report any other. Real models are in embed/minilm, in this process, and embed/openai, on a server.
//
//	e := embed.Cached(embed.Batched(remote, 64), 10_000)
//	vectors, err := e.EmbedDocuments(ctx, texts)
//
// [Embedder] has the two methods of langchaingo's embeddings.Embedder, so that any of those fits without an adapter.
//
// [Hashed] maps words, pairs of words and character trigrams into 384 dimensions by hashing. It is deterministic, takes
// microseconds and finds texts that share words or stems; it does not know that "car" and "automobile" mean the same.
//
// Two vectors can be compared only if the same embedder made them. Vectors of different lengths are an error here
// ([ErrDimension]), never a similarity of 0.
package embed
