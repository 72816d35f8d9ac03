package openai

import "context"

type chunksKey struct{}

// WithChunks returns a context for [Engine.Generate] in which f gets each chunk of the answer as the server sent it, before
// its text is given to onText. That is for engine packages whose server says more in a chunk than the OpenAI API
// knows. f is called by the goroutine of Generate; data is valid during the call only.
func WithChunks(ctx context.Context, f func(data []byte)) context.Context {
	return context.WithValue(ctx, chunksKey{}, f)
}

// chunksOf returns the context's function, nil if there is none.
func chunksOf(ctx context.Context) func(data []byte) {
	f, _ := ctx.Value(chunksKey{}).(func(data []byte))
	return f
}
