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
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// Server is the simulated server. It starts no goroutines and needs no closing. All methods are safe for concurrent use.
type Server struct {
	options Options
	engine  *sim.Engine
	ledger  *ledger // nil: nobody wants to know what is lost
	mux     *http.ServeMux
	created int64     // seconds since 1970
	bodies  sync.Pool // of *bytes.Buffer
	stubs   map[*kind]stubAnswers
}

var _ http.Handler = (*Server)(nil)

// answerMember carries the answer to the engine.
const answerMember = "answer"

// keepBody is the largest buffer, in bytes, that is kept for the next request.
const keepBody = 1 << 20

// New returns a server with an empty cache. Of options that [Options.Validate] refuses it takes the default.
func New(options Options) *Server {
	options = options.withDefaults()
	s := &Server{options: options, mux: http.NewServeMux(), created: time.Now().Unix(), stubs: map[*kind]stubAnswers{}}
	s.engine = sim.New(sim.Options{
		CapacityTokens: options.CapacityTokens, BlockTokens: options.BlockTokens,
		Reply: func(r engines.Request) string { return string(r.Extra[answerMember]) },
	})
	if options.Evict != nil && options.CapacityTokens > 0 && !options.Stub {
		s.ledger = newLedger(options.EvictRule, options.EngineIDs, options.Evict)
		s.engine.Subscribe(s.ledger.observe)
	}
	for path, k := range map[string]*kind{"/v1/chat/completions": &chatKind, "/v1/completions": &textKind} {
		s.stubs[k] = newStubAnswers(k, options.Model, s.created)
		s.mux.HandleFunc(path, only(http.MethodPost, func(w http.ResponseWriter, r *http.Request) { s.generate(w, r, k) }))
	}
	s.mux.HandleFunc("/v1/models", only(http.MethodGet, s.models))
	s.mux.HandleFunc("/health", only(http.MethodGet, func(http.ResponseWriter, *http.Request) {}))
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, &refusal{http.StatusNotFound, "no such path"})
	})
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Stats returns what went through the cache so far.
func (s *Server) Stats() sim.Stats { return s.engine.Stats() }

func only(method string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method {
			w.Header().Set("Allow", method)
			refuse(w, &refusal{http.StatusMethodNotAllowed, "want " + method})
			return
		}
		next(w, r)
	}
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		Owner   string `json:"owned_by"`
	}
	writeJSON(w, http.StatusOK, struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{"list", []model{{s.options.Model, "model", s.created, "ragpilot"}}})
}

// generate answers a request of either kind.
func (s *Server) generate(w http.ResponseWriter, r *http.Request, k *kind) {
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
	err := readBody(w, r, body, s.options.MaxBody)
	if err == nil && s.options.Stub {
		stub := s.stubs[k]
		stub.serve(w, body.Bytes())
		return
	}
	var q *question
	if err == nil {
		q, err = decode(body.Bytes(), r.Header, k)
	}
	if err != nil {
		if refused, ok := errors.AsType[*refusal](err); ok {
			refuse(w, refused)
		}
		return
	}
	a := &answer{kind: k, id: k.prefix + q.id, model: s.options.Model, created: time.Now().Unix()}
	w.Header().Set("X-Request-Id", q.id)
	if q.stream {
		s.stream(w, r, q, a)
		return
	}
	response, err := s.ask(r.Context(), q, k, func(string) error { return nil })
	if err != nil {
		return // the client is gone
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(a.whole(response.Text, response.Finish, response.Usage))
}

// stream sends an answer piece by piece. Its headers go at once, as vLLM's do.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, q *question, a *answer) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	out := http.NewResponseController(w)
	send := func(chunk []byte) error {
		if len(chunk) > 0 {
			if _, err := w.Write(chunk); err != nil {
				return err
			}
		}
		return out.Flush()
	}
	if send(nil) != nil {
		return
	}
	opening := a.opening()
	response, err := s.ask(r.Context(), q, a.kind, func(piece string) error {
		chunk := append(opening, a.piece(piece)...)
		opening = nil
		return send(chunk)
	})
	if err != nil {
		return
	}
	last := append(opening, a.end(response.Finish)...)
	if q.usage {
		last = append(last, a.usage(response.Usage)...)
	}
	_ = send(append(last, done...))
}

// ask runs the request on the engine, and gives each piece of the answer to say when it is due.
func (s *Server) ask(ctx context.Context, q *question, k *kind, say func(piece string) error) (engines.Response, error) {
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
		if err := waitUntil(ctx, due); err != nil {
			return err
		}
		return say(piece)
	})
	if err != nil && s.ledger != nil {
		s.ledger.read(q.id, response.Usage.CachedTokens) // no Served event will tell
	}
	return response, err
}

// waitUntil waits, and returns ctx's error if it ends first.
func waitUntil(ctx context.Context, due time.Time) error {
	wait := time.Until(due)
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
