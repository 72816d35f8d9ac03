package server

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/openaiserver"
)

// complete answers a request for a completion of either kind.
func (s *Server) complete(k *openaiserver.Kind) http.HandlerFunc {
	return s.counted(func(w http.ResponseWriter, r *http.Request) {
		var q *question
		m, err := s.read(w, r)
		if err == nil {
			q, err = s.ask(m, r.Header, k)
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		q.Generate = func(ctx context.Context, onText func(int, string) error) ([]engines.Response, error) {
			return s.generate(ctx, q, onText)
		}
		s.front.Complete(r.Context(), w, &q.Completion)
	})
}

// generate runs all prompts of a request together, if none is refused. The first that fails ends the others.
func (s *Server) generate(ctx context.Context, q *question, onText func(i int, text string) error) ([]engines.Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	responses := make([]engines.Response, len(q.prompts))
	failures := make([]error, len(q.prompts))
	for i, tokens := range q.prompts {
		if err := s.engine.Check(s.prompt(q, i), tokens); err != nil {
			s.metrics.observe(q.context, responses[i], err)
			return nil, err
		}
	}
	var group sync.WaitGroup
	for i, tokens := range q.prompts {
		group.Go(func() {
			responses[i], failures[i] = s.engine.GenerateTokens(ctx, s.prompt(q, i), tokens, func(text string) error { return onText(i, text) })
			s.metrics.observe(q.context, responses[i], failures[i])
			if failures[i] != nil {
				cancel()
			}
		})
	}
	group.Wait()
	return responses, first(failures)
}

// first returns the error that ended the others: one that is not a cancellation, if there is any.
func first(failures []error) (err error) {
	for _, e := range failures {
		if e != nil && (err == nil || errors.Is(err, context.Canceled)) {
			err = e
		}
	}
	return err
}
