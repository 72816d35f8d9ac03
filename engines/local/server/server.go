package server

import (
	"context"
	"net/http"
	"sync"

	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/internal/openaiserver"
)

// Server is an [http.Handler] over an engine. Its methods are safe for concurrent use. It keeps no goroutine of its own but those of
// the requests that it answers.
type Server struct {
	engine  *local.Engine
	config  Config
	mux     *http.ServeMux
	front   *openaiserver.Front
	metrics *metrics
	created int64 // seconds since 1970
	base    context.Context
	cut     context.CancelCauseFunc // ends all requests

	mu       sync.Mutex
	running  int           // that count
	draining bool          // no more are taken
	idle     chan struct{} // closed when draining and none is left
}

var _ http.Handler = (*Server)(nil)

// New returns a server for an engine, which stays the caller's: close it after [Server.Shutdown].
func New(engine *local.Engine, config Config) *Server {
	s := &Server{engine: engine, config: config.withDefaults(), idle: make(chan struct{})}
	now := s.config.Now()
	s.created = now.Unix()
	s.front = &openaiserver.Front{Now: s.config.Now, WriteTimeout: s.config.IOTimeout, StopReasons: true, Refuse: s.refusalOf}
	s.base, s.cut = context.WithCancelCause(context.Background())
	s.metrics = newMetrics(engine, now)
	s.mux = openaiserver.NewMux(s.endpoints())
	return s
}

func (s *Server) endpoints() map[string]openaiserver.Endpoint {
	get := func(serve http.HandlerFunc) openaiserver.Endpoint {
		return openaiserver.Endpoint{Method: http.MethodGet, Serve: serve}
	}
	post := func(serve http.HandlerFunc) openaiserver.Endpoint {
		return openaiserver.Endpoint{Method: http.MethodPost, Serve: serve}
	}
	return map[string]openaiserver.Endpoint{
		"/v1/chat/completions":  post(s.complete(&openaiserver.Chat)),
		"/v1/completions":       post(s.complete(&openaiserver.Text)),
		"/v1/models":            get(s.models),
		"/v1/models/{model...}": get(s.oneModel),
		"/tokenize":             post(s.counted(s.tokenize)),
		"/detokenize":           post(s.counted(s.detokenize)),
		"/reset_prefix_cache":   post(s.reset),
		"/forget":               post(s.counted(s.forget)),
		"/health":               get(s.health),
		"/version":              get(s.version),
		"/metrics":              get(s.metrics.handler.ServeHTTP),
		"/openapi.json":         get(s.schema),
		"/kv_event_sources":     get(s.sources),
	}
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// counted serves requests that have a body: MaxRequests bounds them, and the server's end waits for them. Their contexts end with it.
func (s *Server) counted(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, done, err := s.begin(r.Context())
		if err != nil {
			err.Write(w)
			return
		}
		defer done()
		serve(w, r.WithContext(ctx))
	}
}

// begin enters a request, whose context ends with it or when the server is to end. done must be called at its end.
func (s *Server) begin(request context.Context) (ctx context.Context, done func(), err *openaiserver.Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining:
		return nil, nil, closing()
	case s.running == s.config.MaxRequests:
		return nil, nil, &openaiserver.Refusal{Status: http.StatusTooManyRequests, Message: "too many requests at a time"}
	}
	s.running++
	ctx, cancel := context.WithCancelCause(request)
	stop := context.AfterFunc(s.base, func() { cancel(errShutdown) })
	return ctx, func() {
		stop()
		cancel(nil)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.running--; s.running == 0 && s.draining {
			close(s.idle)
		}
	}, nil
}

// Shutdown takes no more completions, nor texts for the tokenizer, and returns when none is left. Those that run when
// ctx ends are cut short with an error, and ctx's error is returned. Call it once, before that of the
// [http.Server], which closes listeners: meanwhile /health says that the server is about to end, and the rest is
// answered.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if !s.draining {
		s.draining = true
		if s.running == 0 {
			close(s.idle)
		}
	}
	s.mu.Unlock()
	select {
	case <-s.idle:
		return nil
	case <-ctx.Done():
	}
	s.cut(errShutdown)
	<-s.idle
	return ctx.Err()
}

func (s *Server) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}
