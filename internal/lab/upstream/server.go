package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/base/pause"
	"github.com/ragpilot/ragpilot/internal/openaiserver"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// Server is the simulated server. It starts no goroutines and needs no closing. All methods are safe for concurrent use.
type Server struct {
	options Options
	engine  *sim.Engine
	ledger  *ledger // nil: losses are not reported
	mux     *http.ServeMux
	front   *openaiserver.Front
	bodies  sync.Pool // of *bytes.Buffer
}

var _ http.Handler = (*Server)(nil)

// answerMember carries the answer to the engine.
const answerMember = "answer"

// keepBody is the largest buffer, in bytes, that is kept for the next request.
const keepBody = 1 << 20

// New returns a server with an empty cache. Of options that [Options.Validate] refuses it takes the default.
func New(options Options) *Server {
	options = options.withDefaults()
	s := &Server{options: options, front: &openaiserver.Front{Now: time.Now, EarlyHeaders: true, Refuse: refusalOf}}
	s.engine = sim.New(sim.Options{
		CapacityTokens: options.CapacityTokens, BlockTokens: options.BlockTokens,
		Reply: func(r engines.Request) string { return string(r.Extra[answerMember]) },
	})
	if options.Evict != nil && options.CapacityTokens > 0 && !options.Stub {
		s.ledger = newLedger(options.EvictRule, options.EngineIDs, options.Evict)
		s.engine.Subscribe(s.ledger.observe)
	}
	complete := func(k *openaiserver.Kind) http.HandlerFunc {
		stub := newStubAnswers(s.front, k, options.Model)
		return func(w http.ResponseWriter, r *http.Request) { s.complete(w, r, k, &stub) }
	}
	models := openaiserver.ModelList(openaiserver.NewModel(options.Model, time.Now().Unix()))
	s.mux = openaiserver.NewMux(map[string]openaiserver.Endpoint{
		"/v1/chat/completions": {Method: http.MethodPost, Serve: complete(&openaiserver.Chat)},
		"/v1/completions":      {Method: http.MethodPost, Serve: complete(&openaiserver.Text)},
		"/v1/models": {Method: http.MethodGet, Serve: func(w http.ResponseWriter, _ *http.Request) {
			openaiserver.WriteJSON(w, models)
		}},
		"/health": {Method: http.MethodGet, Serve: func(http.ResponseWriter, *http.Request) {}},
	})
	return s
}

// refusalOf is what a client gets for an error; nil: it has gone.
func refusalOf(_ context.Context, err error) *openaiserver.Refusal {
	refused, _ := errors.AsType[*openaiserver.Refusal](err)
	return refused
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Stats returns what went through the cache so far.
func (s *Server) Stats() sim.Stats { return s.engine.Stats() }

// complete answers a request of either kind.
func (s *Server) complete(w http.ResponseWriter, r *http.Request, k *openaiserver.Kind, stub *stubAnswers) {
	body, _ := s.bodies.Get().(*bytes.Buffer)
	if body == nil {
		body = new(bytes.Buffer)
	}
	body.Reset()
	defer func() {
		if body.Cap() <= keepBody {
			s.bodies.Put(body)
		}
	}()
	err := openaiserver.ReadBody(w, r, body, s.options.MaxBody, 0)
	if err == nil && s.options.Stub {
		stub.serve(w, body.Bytes())
		return
	}
	var q *question
	if err == nil {
		q, err = decode(body.Bytes(), r.Header, k)
	}
	if err != nil {
		if refused := refusalOf(r.Context(), err); refused != nil {
			refused.Write(w)
		}
		return
	}
	w.Header().Set("X-Request-Id", q.id)
	s.front.Complete(r.Context(), w, &openaiserver.Completion{
		Kind: k, ID: q.id, Model: s.options.Model, Stream: q.stream, Usage: q.usage, Prompts: 1,
		Generate: func(ctx context.Context, onText func(int, string) error) ([]engines.Response, error) {
			response, err := s.ask(ctx, q, k, func(piece string) error { return onText(0, piece) })
			return []engines.Response{response}, err
		},
	})
}

// ask runs the request on the engine, and gives each piece of the answer to say when it is due.
func (s *Server) ask(ctx context.Context, q *question, k *openaiserver.Kind, say func(piece string) error) (engines.Response, error) {
	req := engines.Request{
		ID: q.id, Messages: q.messages, MaxTokens: q.maxTokens,
		Extra: map[string]json.RawMessage{answerMember: json.RawMessage(s.options.text(q))},
	}
	if s.ledger != nil {
		s.ledger.begin(q.id, k)
	}
	delay := s.options.Delay
	if c := s.options.Cost; c != nil {
		prompt := 0
		for _, m := range q.messages {
			prompt += tokens.Count(m.Content)
		}
		delay += c.Base + time.Duration(prompt-s.engine.Resident(req))*c.PerToken
	}
	var due time.Time // of the next piece; zero: none was said
	response, err := s.engine.Generate(ctx, req, func(piece string) error {
		if due.IsZero() {
			due = time.Now().Add(delay)
		} else {
			due = due.Add(s.options.TokenDelay)
		}
		if !pause.Until(ctx, due) {
			return ctx.Err()
		}
		return say(piece)
	})
	if err != nil && s.ledger != nil {
		s.ledger.read(q.id, response.Usage.CachedTokens) // no Served event will come
	}
	return response, err
}
