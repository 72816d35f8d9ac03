package server

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/ragpilot/ragpilot/engines"
)

// complete answers a request for a completion of either kind.
func (s *Server) complete(w http.ResponseWriter, r *http.Request, k *kind) {
	ctx := r.Context()
	var q *question
	m, failed := s.read(w, r)
	if failed == nil {
		q, failed = s.ask(m, r.Header, k)
	}
	if failed != nil {
		if e, there := s.told(ctx, failed); there {
			refuse(w, &e)
		}
		return
	}
	out := &stream{w: w, control: http.NewResponseController(w), patience: s.config.IOTimeout}
	defer out.relax()
	if q.stream {
		s.stream(ctx, out, q)
		return
	}
	responses, failed := s.generate(ctx, q, func(int, string) error { return nil })
	out.deadline()
	if failed == nil {
		writeJSON(w, http.StatusOK, encode(q.whole(s.config.Now().Unix(), responses)))
	} else if e, there := s.told(ctx, failed); there {
		refuse(w, &e)
	}
}

// stream sends an answer as it comes. Errors before its first text are told by a status, later ones in the stream.
func (s *Server) stream(ctx context.Context, out *stream, q *question) {
	created := s.config.Now().Unix()
	opened := make([]bool, len(q.prompts)) // each is used by one goroutine at a time
	open := func(i int) (chunks []answer) {
		if !opened[i] {
			opened[i] = true
			if a, ok := q.opening(created, i); ok {
				chunks = append(chunks, a)
			}
		}
		return chunks
	}
	responses, err := s.generate(ctx, q, func(i int, text string) error {
		return out.send(append(open(i), q.piece(created, i, text, nil, nil))...)
	})
	if err != nil {
		if e, there := s.told(ctx, err); there {
			out.fail(&e)
		}
		return
	}
	for i, r := range responses {
		if out.send(append(open(i), q.piece(created, i, "", &r.Finish, r.Context))...) != nil {
			return
		}
	}
	if q.usage {
		last := q.answer(q.kind.chunk, created)
		last.Usage = counted(responses)
		_ = out.send(last)
	}
	out.end()
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
