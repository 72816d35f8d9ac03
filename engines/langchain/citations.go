package langchain

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/citation"
)

// WithCitations has f called with each citation in the answer to a request that is tied to a plan: while the answer is
// streamed, or when it is complete. Labels that earlier turns of the conversation showed are known as well. f is called by
// the goroutine that generates and with the context of its call.
func WithCitations(f func(ctx context.Context, c citation.Citation)) Option {
	return func(s *settings) { s.cited = f }
}

// WithRewrittenCitations replaces citations in streamed chunks and in the answer, see [citation.Options].
func WithRewrittenCitations(rewrite func(text string, cited []citation.Citation) string) Option {
	return func(s *settings) { s.recite = rewrite }
}

// reader looks for citations in one answer. nil: no citations are asked for.
type reader struct {
	settings
	ctx     context.Context //nolint:containedctx // a reader lives as long as one call, whose context the callback gets
	sources *citation.Sources
	pending []func() error // pass on what filters hold back, at the end
	read    atomic.Bool    // the answer was streamed to a filter
}

// reader returns what reads the answer of a planned call.
func (m *model) reader(ctx context.Context, sources *citation.Sources) *reader {
	if sources == nil {
		return nil
	}
	return &reader{settings: m.settings, ctx: ctx, sources: sources}
}

// filter returns a filter for one copy of the answer; only one of them reports what it finds.
func (r *reader) filter(report bool) *citation.Filter {
	o := citation.Options{Rewrite: r.recite}
	if report && r.cited != nil {
		o.Found = func(c citation.Citation) { r.cited(r.ctx, c) }
	}
	return citation.New(r.sources, o)
}

// options returns the caller's options with the streaming functions behind filters, if there are any.
func (r *reader) options(options []llms.CallOption) []llms.CallOption {
	if r == nil {
		return options
	}
	o := applied(options, llms.CallOptions{})
	plain, reasoning := r.filter(o.StreamingFunc != nil), r.filter(o.StreamingFunc == nil)
	if f := o.StreamingFunc; f != nil {
		r.atEnd(plain, func(held []byte) error { return f(r.ctx, held) })
	}
	if f := o.StreamingReasoningFunc; f != nil {
		r.atEnd(reasoning, func(held []byte) error { return f(r.ctx, nil, held) })
	}
	return seeing(options, func(chunk []byte, thinks bool) []byte {
		r.read.Store(true)
		if thinks {
			return []byte(reasoning.Push(string(chunk)))
		}
		return []byte(plain.Push(string(chunk)))
	})
}

func (r *reader) atEnd(f *citation.Filter, pass func([]byte) error) {
	r.pending = append(r.pending, func() error {
		if held := f.End(); held != "" {
			return pass([]byte(held))
		}
		return nil
	})
}

// finish reads an answer that is complete.
func (r *reader) finish(response *llms.ContentResponse, err error) (*llms.ContentResponse, error) {
	if r == nil || err != nil {
		return response, err
	}
	for _, pass := range r.pending {
		if err := pass(); err != nil {
			return response, err
		}
	}
	if response == nil || r.read.Load() && r.recite == nil {
		return response, nil
	}
	out := *response
	out.Choices = slices.Clone(response.Choices)
	for i, choice := range out.Choices {
		if choice == nil {
			continue
		}
		f, c := r.filter(!r.read.Load()), *choice
		c.Content = f.Push(c.Content) + f.End()
		out.Choices[i] = &c
	}
	return &out, nil
}
