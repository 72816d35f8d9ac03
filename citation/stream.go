package citation

import (
	"context"
	"io"
	"iter"
)

// Writer returns a writer that passes an answer through the filter to w. Close passes on what was held back; it does not
// close w. After an error of w, all further calls return it.
func (f *Filter) Writer(w io.Writer) io.WriteCloser { return &writer{filter: f, w: w} }

type writer struct {
	filter *Filter
	w      io.Writer
	err    error
}

// Write passes p on. It returns len(p) unless w fails.
func (w *writer) Write(p []byte) (int, error) {
	if w.err == nil {
		w.pass(w.filter.Push(string(p)))
	}
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

func (w *writer) Close() error {
	if w.err == nil {
		w.pass(w.filter.End())
	}
	return w.err
}

func (w *writer) pass(text string) {
	if text != "" {
		_, w.err = io.WriteString(w.w, text)
	}
}

// Seq returns the pieces of an answer as the filter passes them on, without empty ones. What is held back comes at the end.
func (f *Filter) Seq(pieces iter.Seq[string]) iter.Seq[string] {
	return func(yield func(string) bool) {
		for piece := range pieces {
			if text := f.Push(piece); text != "" && !yield(text) {
				return
			}
		}
		if text := f.End(); text != "" {
			yield(text)
		}
	}
}

// Chunks returns a streaming function, as langchaingo's llms.WithStreamingFunc takes it, that passes an answer through the
// filter to next (nil: to nowhere). All chunks are passed on, empty ones as well; with Options.Rewrite the caller must pass
// on what End returns when the answer is complete.
func (f *Filter) Chunks(next func(ctx context.Context, chunk []byte) error) func(ctx context.Context, chunk []byte) error {
	return func(ctx context.Context, chunk []byte) error {
		text := f.Push(string(chunk))
		if next == nil {
			return nil
		}
		return next(ctx, []byte(text))
	}
}
