package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ragpilot/ragpilot/internal/sidecar/reqbody"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/sidecar/tracing"
)

// Options are what a [Server] gets from the program around it. The zero value will do.
type Options struct {
	// Logger receives what happens; nil: nothing is logged. See [NewLogger].
	Logger *slog.Logger
	// Live is changed by [Server.Reload]; share it with the API. Nil: the server makes its own.
	Live *settings.Live
	// Registry is what /metrics shows; the server enters its own metrics in it. Nil: a new one.
	Registry *prometheus.Registry
	// Load returns the configuration that [Server.Reload] takes over, as [Source.Load] does. Nil: nothing to reload.
	Load func() (settings.Config, error)
	// Tracer makes a span of every request but probes, and is flushed when the last answer has ended; its owner
	// closes it. Nil: none.
	Tracer *tracing.Tracer
	// Hangup makes Run call Reload for each value; nil: never.
	Hangup <-chan os.Signal
}

// Server runs an API until its context ends. All methods may be called concurrently; Run only once.
type Server struct {
	// Set by New and never changed.
	options      Options
	log          *slog.Logger
	live         *settings.Live
	count        *counters
	bodies       *reqbody.Budget
	timeouts     settings.Timeouts
	tenantHeader string
	admin        *http.ServeMux
	mainServer   *http.Server
	adminServer  *http.Server
	cut          context.CancelFunc // ends the context of every request
	listening    chan struct{}      // closed when the listeners are open

	keys        atomic.Pointer[keyring]
	certificate atomic.Pointer[tls.Certificate] // nil without settings.TLS
	access      atomic.Pointer[access]
	state       atomic.Int32
	began       atomic.Bool
	inFlight    atomic.Int64 // requests to the main listener whose handler has not returned

	mu struct {
		sync.Mutex // held while Reload works; addresses are read under it
		config     settings.Config
		addr       string
		adminAddr  string
	}
}

// New makes a server for an API. It reads the files that cfg names, and opens no listener. The API is called
// concurrently; the request's context has its tenant and its [RequestID] and ends when the client goes away, or when
// the time for draining is over.
func New(cfg settings.Config, api http.Handler, o Options) (*Server, error) {
	cfg, err := cfg.ReadSecrets()
	if err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if api == nil {
		return nil, errors.New("serve: the API is nil")
	}
	s := &Server{
		options: o, log: o.Logger, live: o.Live, timeouts: cfg.Timeouts, tenantHeader: cfg.TrustTenantHeader, listening: make(chan struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.live == nil {
		s.live = new(settings.Live)
	}
	reg := o.Registry
	if reg == nil {
		reg = NewRegistry()
	}
	s.bodies = reqbody.NewBudget(func() int64 { return s.live.Load().Limits.InFlightBytes }, cfg.Timeouts.InFlight)
	if s.count, err = newCounters(reg, s.bodies.Used); err != nil {
		return nil, fmt.Errorf("serve: metrics: %w", err)
	}
	base, cut := context.WithCancel(context.Background())
	s.cut = cut
	s.mainServer = s.httpServer(cfg, s.observed(s.recovered(s.limited(s.probed(s.guarded(s.straightened(s.authenticated(api))))))))
	s.mainServer.BaseContext = func(net.Listener) context.Context { return base }
	s.admin = s.adminMux(reg, cfg.Pprof)
	s.adminServer = s.httpServer(cfg, http.MaxBytesHandler(s.guardedAdmin(s.admin), adminBody))
	if cfg.TLS.On() {
		if s.mainServer.TLSConfig, err = s.tlsConfig(cfg.TLS); err != nil {
			return nil, err
		}
	}
	if err := s.use(cfg); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) httpServer(cfg settings.Config, h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: cfg.Timeouts.ReadHeader,
		IdleTimeout:       cfg.Timeouts.Idle,
		MaxHeaderBytes:    cfg.Limits.HeaderBytes,

		DisableGeneralOptionsHandler: true, // it would answer before anything is checked
		// What net/http reports is about single connections: scanners, broken handshakes.
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// use makes cfg the present configuration, or changes nothing.
func (s *Server) use(cfg settings.Config) error {
	var certificate *tls.Certificate
	if cfg.TLS.On() {
		var err error
		if certificate, err = readCertificate(cfg.TLS); err != nil {
			return err
		}
	}
	s.certificate.Store(certificate)
	s.keys.Store(newKeyring(cfg, s.keys.Load()))
	s.access.Store(newAccess(cfg))
	s.live.Store(cfg)
	s.mu.config = cfg
	return nil
}

// Admin returns the routes of the admin listener, to add others. They ask for no key.
func (s *Server) Admin() *http.ServeMux { return s.admin }

// Listening is closed when the listeners are open. If they cannot be opened Run returns and it never is.
func (s *Server) Listening() <-chan struct{} { return s.listening }

// Addr returns the address of the main listener, "" before it is open.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.addr
}

// AdminAddr returns the address of the admin listener, "" before it is open and if there is none.
func (s *Server) AdminAddr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.adminAddr
}

// Reload takes over what Options.Load returns, as far as it needs no restart; what does is named in the log. After an
// error all is as it was before.
func (s *Server) Reload() error {
	if s.options.Load == nil {
		return errors.New("serve: there is nothing to reload from")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.reloadLocked()
	s.count.reloaded(err)
	return err
}

func (s *Server) reloadLocked() error {
	next, err := s.options.Load()
	if err != nil {
		return err
	}
	if next, err = next.ReadSecrets(); err != nil {
		return err
	}
	if err := next.Validate(); err != nil {
		return err
	}
	taken, changed, restart := s.mu.config.TakeOver(next)
	if err := taken.Validate(); err != nil { // what waits for a restart may be unsafe with what does not: an open address without keys
		return err
	}
	if err := s.use(taken); err != nil {
		return err
	}
	s.log.Info("configuration reloaded", "changed", changed)
	if len(restart) > 0 {
		s.log.Warn("changed in the configuration, but a restart is needed", "fields", restart)
	}
	return nil
}
