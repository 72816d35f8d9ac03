package openai

import (
	"context"
	"fmt"

	"github.com/ragpilot/ragpilot/embed"
)

// Embedder asks one server. It is safe for concurrent use, and keeps connections open between calls as its http.Client does.
type Embedder struct {
	opts    Options
	address string
}

var (
	_ embed.Embedder = (*Embedder)(nil)
	_ embed.Named    = (*Embedder)(nil)
)

// New checks and copies the options. It does not ask the server. Errors name the field.
func New(opts Options) (*Embedder, error) {
	opts, address, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("openai: %w", err)
	}
	return &Embedder{opts: opts, address: address}, nil
}

// Name is the model's name and, if one was asked for, the length of its vectors. It is empty if Options.Model is.
func (e *Embedder) Name() string {
	if e.opts.Model == "" || e.opts.Dimensions == 0 {
		return e.opts.Model
	}
	return fmt.Sprintf("%s-%d", e.opts.Model, e.opts.Dimensions)
}

// EmbedDocuments returns a vector for each text, in their order. It sends batch after batch, and fails if one of them
// does. Vectors are as the server gives them: of length 1 with most models.
func (e *Embedder) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, 0, len(texts))
	for len(vectors) < len(texts) {
		part := e.batch(texts[len(vectors):], e.opts.DocumentPrefix)
		found, err := e.ask(ctx, part)
		if err != nil {
			return nil, fmt.Errorf("openai: texts %d to %d: %w", len(vectors), len(vectors)+len(part)-1, err)
		}
		if len(vectors) > 0 && len(found[0]) != len(vectors[0]) {
			return nil, fmt.Errorf("openai: text %d: %w", len(vectors), &embed.DimensionError{Want: len(vectors[0]), Got: len(found[0])})
		}
		vectors = append(vectors, found...)
	}
	return vectors, nil
}

// EmbedQuery returns the vector of a question.
func (e *Embedder) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	vectors, err := e.ask(ctx, []string{e.opts.QueryPrefix + text})
	if err != nil {
		return nil, fmt.Errorf("openai: %w", err)
	}
	return vectors[0], nil
}

// batch returns the first texts that go into one request, one at least, with the prefix.
func (e *Embedder) batch(texts []string, prefix string) []string {
	var part []string
	size := 0
	for _, text := range texts[:min(len(texts), e.opts.Batch)] {
		size += len(prefix) + len(text)
		if size > e.opts.BatchBytes && len(part) > 0 {
			break
		}
		part = append(part, prefix+text)
	}
	return part
}
