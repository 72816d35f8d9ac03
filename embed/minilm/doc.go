// Package minilm is the sentence model all-MiniLM-L6-v2 in pure Go: text in, 384 numbers out, with no server, no cgo and no
// key.
//
//	dir, err := minilm.Pull(ctx, minilm.PullOptions{}) // once: 83 MB into the user's cache folder
//	model, err := minilm.Open(dir)
//	vectors, err := model.EmbedDocuments(ctx, texts)
//
// [Model] is an embed.Embedder, and so fits wherever langchaingo's embeddings.Embedder does. Its vectors have length 1 and
// differ from those of a computation in 64 bits by 1e-5 at most. They do not depend on which texts are embedded together.
//
// Only the first [MaxTokens] tokens of a text are read, about 190 English words. Split longer texts.
//
// The model was trained on English. It costs two to three milliseconds for each token on one core:
// thousands of texts, not millions. For more, ask a server with embed/openai.
package minilm
