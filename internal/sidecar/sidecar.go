// Package sidecar puts the server together: the reference's endpoints (httpapi), the proxy in front of the engine
// (proxy), what a cloud provider's cache needs (promptcache), and the figures (figures).
package sidecar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/contextpilot/profile"
	"github.com/ragpilot/ragpilot/internal/lru/budget"
	"github.com/ragpilot/ragpilot/internal/prompt/orders"
	"github.com/ragpilot/ragpilot/internal/sidecar/cachewatch"
	"github.com/ragpilot/ragpilot/internal/sidecar/compat"
	"github.com/ragpilot/ragpilot/internal/sidecar/compat/recorded"
	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/internal/sidecar/redisorders"
	"github.com/ragpilot/ragpilot/internal/sidecar/report"
	"github.com/ragpilot/ragpilot/internal/sidecar/server"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/sidecar/state"
	"github.com/ragpilot/ragpilot/internal/sidecar/tracing"
)

// Options are what the API needs beside its configuration.
type Options struct {
	Live     *settings.Live        // nil: the configuration does not change
	Registry prometheus.Registerer // nil: a new one
	Log      *slog.Logger          // nil: slog.Default
	// ProviderBase replaces the cloud provider's address, for gateways and tests; nil: the provider's own.
	ProviderBase *url.URL
	// Transport replaces the one to the engine, for tests without a network; nil: proxy.NewTransport.
	Transport http.RoundTripper
	// LoadCost is the pilot's, see [contextpilot.Config].
	LoadCost map[string]float64
	// Version is this program's, for traces; empty: that of the build.
	Version string
	// Tracer replaces the one that the configuration tells of, and is not closed here; nil: that one.
	Tracer *tracing.Tracer
}

// API is everything that a server serves. Safe for concurrent use.
type API struct {
	main    *http.ServeMux
	proxy   *proxy.Proxy
	index   *compat.API
	events  *cachewatch.Follower // nil: there is no engine to follow
	figures *report.Figures
	board   *board
	tracer  *tracing.Tracer
	log     *slog.Logger
	// memories are nil if none are kept.
	memories *keptMemories
	closers  []func() error
}

// New makes an API. cfg has been validated.
func New(cfg settings.Config, o Options) (*API, error) {
	cfg, err := cfg.ReadSecrets()
	if err != nil {
		return nil, err
	}
	if o.Live == nil {
		o.Live = settings.NewLive(cfg)
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	most, memory := newBounds(cfg)
	money, err := newMoney(cfg, o.ProviderBase, most.cloud)
	if err != nil {
		return nil, err
	}
	a := &API{main: http.NewServeMux(), log: o.Log}
	counted := money.figures(o.Registry)
	counted.Caches = a.caches
	numbers, err := report.New(counted)
	if err != nil {
		return nil, err
	}
	pilot, err := newPilot(cfg, most, o.LoadCost)
	if err != nil {
		return nil, err
	}
	if err := o.Registry.Register(newRemembered(memory, most.indexes)); err != nil {
		return nil, fmt.Errorf("metrics of the memory: %w", err)
	}
	if err := o.Registry.Register(newIndex(pilot.Stats)); err != nil {
		return nil, fmt.Errorf("metrics of the index: %w", err)
	}
	a.figures, a.board = numbers, newBoard(cfg, most.text, o.Live, pilot, numbers)
	a.board.expire = func() { a.proxy.Expire() }
	a.index = compat.New(compat.Options{
		Stateless: cfg.Stateless, CompatIncrementalOrder: cfg.CompatIncrementalOrder, MaxTenants: cfg.Limits.Tenants, MaxTokens: cfg.MaxTokens, Memory: memory,
		Limits: func() (contexts, blocks int) {
			now := o.Live.Load().Limits
			return now.Contexts, now.Blocks
		},
		OnReset:  func(tenant string) { a.proxy.Forget(tenant, "") },
		OnEvict:  func(tenant string, ids []string) { a.proxy.Evicted(tenant, ids) },
		OnShrunk: func(tenant, id string, tokens int) { a.proxy.Cut(tenant, id, tokens) },
	})
	if a.tracer, err = a.trace(cfg.Trace, o); err != nil {
		return nil, err
	}
	po := proxy.Options{
		Tracer: a.tracer, Pilot: pilot, Index: a.index, Log: o.Log, Recorder: a.board, Memory: memory, KeepTexts: cfg.KeepTexts, Modulus: cfg.ChunkModulus,
		MaxTenants: cfg.Limits.Tenants, MaxSessions: cfg.Limits.Sessions, AllowedPaths: cfg.AllowedPaths, StoredObjects: cfg.StoredObjects,
		Transport: proxy.NewTransport(cfg.Timeouts.UpstreamConnect, cfg.Timeouts.UpstreamHeader), Window: cfg.Plan.Window, RequestID: server.RequestID, TenantHeader: cfg.TrustTenantHeader, Blocks: cfg.Recompute > 0,
		Live: func() (bool, float64) {
			now := o.Live.Load()
			return now.Shadow, now.HoldOut
		},
	}
	if cfg.Compat {
		po.Compat = recorded.NewResults(memory, cfg.Limits.Tenants)
	}
	if o.Transport != nil {
		po.Transport = o.Transport
	}
	po.Provider = money.provider
	if err := upstream(cfg, &po); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	if err := a.remember(cfg, o, memory, &po); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	if err := a.followCaches(cfg, o, pilot, a.index, &po); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	if a.proxy, err = proxy.New(po); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	if err := a.keepMemories(cfg, o, a.index, most); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	a.main.Handle("/", a.index)
	a.main.Handle("/v1/", a.proxy)
	a.main.Handle("/cloud/stats", onlyRead(a.proxy))
	return a, nil
}

// onlyRead answers methods other than GET and HEAD as the reference's endpoints do.
func onlyRead(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Allow", "GET, HEAD")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusMethodNotAllowed)
		fmt.Fprintln(w, `{"detail":"Method Not Allowed"}`)
	})
}

// maxRequests bounds the index of prompts that begin with documents: of all tenants, far more than an engine's cache holds.
const maxRequests = 100_000

// newPilot makes the pilot that orders documents. Those inside of texts have no names that a note could use, and references are made by
// the proxy.
func newPilot(cfg settings.Config, most bounds, cost map[string]float64) (*contextpilot.Pilot, error) {
	profile, err := profile.Load(cmp.Or(cfg.Profile, "default"))
	if err != nil {
		return nil, fmt.Errorf("profile %q: %w", cfg.Profile, err)
	}
	config, err := profile.Apply(contextpilot.Config{
		MaxRequests: maxRequests, MaxScopes: most.scopes, MaxHistory: most.history, LoadCost: cost,
	})
	if err != nil {
		return nil, fmt.Errorf("profile %q: %w", cfg.Profile, err)
	}
	config.Policy = cmp.Or(cfg.Policy, config.Policy)
	if cfg.Recompute > 0 && cfg.CloudProvider == "" {
		config.Recompute, config.Policy = cfg.Recompute, cmp.Or(config.Policy, "retrieval") // documents are found at any place: none need move
	}
	config.Dedup, config.Notes = contextpilot.DedupOff, contextpilot.Notes{Hint: contextpilot.HintNone}
	pilot, err := contextpilot.New(config)
	if err != nil {
		return nil, fmt.Errorf("policy %q, profile %q: %w", config.Policy, cfg.Profile, err)
	}
	return pilot, nil
}

// upstream sets where requests go.
func upstream(cfg settings.Config, po *proxy.Options) (err error) {
	if po.Provider != nil {
		return nil
	}
	po.Key, po.SaltKey = cfg.InferAPIKey.Reveal(), cfg.CacheSaltKey.Reveal()
	po.Upstream, err = url.Parse(cfg.InferAPIURL)
	if err != nil {
		return fmt.Errorf("infer_api_url: %w", err)
	}
	return nil
}

// remember sets what outlives the process, and what replicas share.
func (a *API) remember(cfg settings.Config, o Options, memory *budget.Budget, po *proxy.Options) error {
	log := o.Log
	mem := orders.NewMemoryIn(memory, cfg.Limits.Tenants)
	po.Orders = mem
	if cfg.SharedState != "" {
		shared, err := redisorders.Open(redisorders.Options{URL: cfg.SharedState.Reveal(), Memory: mem, Log: log})
		if err != nil {
			return fmt.Errorf("shared_state: %w", err)
		}
		a.closers = append(a.closers, shared.Close)
		if err := o.Registry.Register(newSharedState(shared.Stats)); err != nil {
			return fmt.Errorf("metrics of shared_state: %w", err)
		}
		shared.Connect(context.Background())
		shared.Follow()
		po.Orders = shared
	}
	if cfg.StateDir == "" {
		return nil
	}
	st, err := state.Open(cfg.StateDir, log)
	if err != nil {
		return fmt.Errorf("state_dir %q: %w", cfg.StateDir, err)
	}
	a.closers = append(a.closers, st.Close)
	if err := o.Registry.Register(newState(st.Damages)); err != nil {
		return fmt.Errorf("metrics of state_dir: %w", err)
	}
	back, err := st.Restore(mem, po.Pilot)
	if err != nil {
		return fmt.Errorf("state_dir %q: %w", cfg.StateDir, err)
	}
	log.Info("state restored", "orders", back.Orders, "prompts", back.Plans, "skipped", back.Skipped)
	po.Orders = st.Orders(po.Orders)
	if po.Provider != nil { // how long ago its prompts were sent is not in the state, and they do not live long
		for _, scope := range po.Pilot.Scopes() {
			po.Pilot.Observe(contextpilot.Event{Kind: contextpilot.Cleared, Scope: scope})
		}
		return nil
	}
	po.Journal, po.Restored = st, back.Plans > 0
	return nil
}

// Close writes the state to the disk; after the last request has ended.
func (a *API) Close() error {
	errs := make([]error, 0, len(a.closers))
	for _, f := range a.closers {
		errs = append(errs, f())
	}
	a.closers = nil
	return errors.Join(errs...)
}

// ServeHTTP answers on the main listener.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.main.ServeHTTP(w, r) }

// Admin adds what belongs on the admin listener: /ui/, /figures and /forget.
func (a *API) Admin(mux *http.ServeMux) {
	mux.Handle("/ui/", dashboard.Handler(a.board))
	mux.Handle("GET /ui", http.RedirectHandler("/ui/", http.StatusMovedPermanently))
	mux.Handle("GET /figures", a.figures)
	mux.HandleFunc("POST /forget", a.forget)
}

// forget drops what is kept of a tenant, or of one of its sessions.
func (a *API) forget(w http.ResponseWriter, r *http.Request) {
	tenant, session := r.FormValue("tenant"), r.FormValue("session")
	w.Header().Set("Content-Type", "application/json")
	session = proxy.SessionName(session)
	known, texts := a.proxy.Forget(tenant, session), a.board.Forget(tenant, session)
	if session == "" {
		known = a.index.Forget(tenant) || known
		remembered, err := a.memories.forget(r.Context(), tenant)
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintln(w, `{"detail":"Memories could not be forgotten; see the log"}`)
			a.log.Error("memories could not be forgotten", "error", err)
			return
		}
		known = known || remembered
	}
	if !known && texts == 0 {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintln(w, `{"detail":"Nothing is known of it"}`)
		return
	}
	fmt.Fprintln(w, `{"status":"ok"}`)
}
