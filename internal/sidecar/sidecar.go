// Package sidecar puts the parts of the sidecar together: the reference's endpoints (compat), the proxy in front of the engine
// (proxy), what a cloud provider's cache needs (cloudcache), memories (memoryapi), figures (report) and the dashboard.
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
	"github.com/ragpilot/ragpilot/internal/base/budget"
	"github.com/ragpilot/ragpilot/internal/prompt/orders"
	"github.com/ragpilot/ragpilot/internal/sidecar/cachewatch"
	"github.com/ragpilot/ragpilot/internal/sidecar/compat"
	"github.com/ragpilot/ragpilot/internal/sidecar/compat/recorded"
	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
	"github.com/ragpilot/ragpilot/internal/sidecar/diagnosis"
	"github.com/ragpilot/ragpilot/internal/sidecar/memories"
	"github.com/ragpilot/ragpilot/internal/sidecar/metrics"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/internal/sidecar/redisorders"
	"github.com/ragpilot/ragpilot/internal/sidecar/report"
	"github.com/ragpilot/ragpilot/internal/sidecar/server"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/sidecar/state"
	"github.com/ragpilot/ragpilot/internal/sidecar/tracing"
	"github.com/ragpilot/ragpilot/stabilise"
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
	// Tracer replaces the one of the configuration, and is not closed here; nil: that one.
	Tracer *tracing.Tracer
}

func (o Options) withDefaults(cfg settings.Config) Options {
	if o.Live == nil {
		o.Live = settings.NewLive(cfg)
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	if o.Transport == nil {
		o.Transport = proxy.NewTransport(cfg.Timeouts.UpstreamConnect, cfg.Timeouts.UpstreamHeader)
	}
	return o
}

// API is everything that a server serves. Safe for concurrent use.
type API struct {
	main     *http.ServeMux
	proxy    *proxy.Proxy
	index    *compat.API
	events   *cachewatch.Follower // nil: there is no engine to follow
	figures  *report.Figures
	board    *board
	misses   *diagnosis.Misses // nil: prompts are not compared
	tracer   *tracing.Tracer
	log      *slog.Logger
	memories *memories.Folder // nil: none are kept
	slots    *slots           // nil: the engine is not asked for them
	closers  []func() error
}

// assembly is an API whose parts are being made.
type assembly struct {
	*API
	Options
	cfg    settings.Config
	set    *metrics.Set
	bounds bounds
	memory *budget.Budget
	money  money
	pilot  *contextpilot.Pilot
	orders *orders.Memory
	po     proxy.Options
}

// New makes an API. cfg has been validated. Each part is made from the configuration and the parts before it; after an error the
// parts that are open are closed again.
func New(cfg settings.Config, o Options) (*API, error) {
	cfg, err := cfg.ReadSecrets()
	if err != nil {
		return nil, err
	}
	o = o.withDefaults(cfg)
	a := &assembly{API: &API{main: http.NewServeMux(), log: o.Log}, Options: o, cfg: cfg, set: metrics.NewSet(o.Registry)}
	a.bounds, a.memory = newBounds(cfg)
	for _, part := range []func() error{
		a.makeFigures, a.makePilot, a.makeMisses, a.makeIndex, a.openTracer, a.setUpstream, a.shareOrders, a.restoreState, a.followCaches,
		a.makeHold, a.makeProxy, a.openMemories,
	} {
		if err := part(); err != nil {
			return nil, errors.Join(err, a.Close())
		}
	}
	a.main.Handle("/", a.index)
	a.main.Handle("/v1/", a.proxy)
	a.main.Handle("/cloud/stats", onlyRead(a.proxy))
	return a.API, nil
}

// makeFigures makes what counts requests and what they cost.
func (a *assembly) makeFigures() (err error) {
	if a.money, err = newMoney(a.cfg, a.ProviderBase, a.bounds.cloud); err != nil {
		return err
	}
	o := a.money.figures(a.Registry)
	o.Caches = a.caches
	a.figures, err = report.New(o)
	return err
}

// makePilot makes the pilot that orders documents, and the dashboard that shows what it expects.
func (a *assembly) makePilot() (err error) {
	if a.pilot, err = newPilot(a.cfg, a.bounds, a.LoadCost); err != nil {
		return err
	}
	a.set.Enter(newRemembered(a.memory, a.bounds.indexes))
	indexMetrics(a.set, a.pilot.Stats)
	a.board = newBoard(a.cfg, a.bounds.text, a.Live, a.pilot, a.figures)
	a.board.expire = func() { a.proxy.Expire() }
	return a.set.Err()
}

// makeMisses makes what finds out why prompts were not in the engine's cache.
func (a *assembly) makeMisses() (err error) {
	bytes := a.cfg.Diagnosis()
	if bytes == 0 {
		return nil
	}
	o := diagnosis.Options{
		Bytes: bytes, Tenants: a.cfg.Limits.Tenants, KeepTexts: a.cfg.KeepTexts, Provider: a.cfg.CloudProvider,
		Registry: a.Registry, Log: a.log, BlockSize: func(model string) int {
			if a.events == nil {
				return 0
			}
			return a.events.BlockSize(model)
		},
	}
	if a.money.priced {
		o.Cost, o.Currency = a.money.lost, a.money.currency
	}
	if a.misses, err = diagnosis.New(o); err != nil {
		return err
	}
	a.closers = append(a.closers, a.misses.Close)
	a.board.misses = a.misses
	return nil
}

// makeIndex makes the reference's endpoints.
func (a *assembly) makeIndex() error {
	live := a.Live
	a.index = compat.New(compat.Options{
		Stateless: a.cfg.Stateless, CompatIncrementalOrder: a.cfg.CompatIncrementalOrder, MaxTenants: a.cfg.Limits.Tenants,
		MaxTokens: a.cfg.MaxTokens, Memory: a.memory,
		Limits: func() (contexts, blocks int) {
			now := live.Load().Limits
			return now.Contexts, now.Blocks
		},
		OnReset: func(tenant string) {
			a.proxy.Forget(tenant, "")
			a.misses.Forget(tenant, "")
		},
		OnEvict: func(tenant string, ids []string) {
			a.proxy.Evicted(tenant, ids)
			a.misses.Evicted(tenant, 0, ids...)
		},
		OnShrunk: func(tenant, id string, tokens int) {
			a.proxy.Cut(tenant, id, tokens)
			a.misses.Evicted(tenant, tokens, id)
		},
	})
	return nil
}

// setUpstream sets where requests go.
func (a *assembly) setUpstream() (err error) {
	if a.po.Provider = a.money.provider; a.po.Provider != nil {
		return nil
	}
	a.po.Key, a.po.SaltKey = a.cfg.InferAPIKey.Reveal(), a.cfg.CacheSaltKey.Reveal()
	if a.po.Upstream, err = url.Parse(a.cfg.InferAPIURL); err != nil {
		return fmt.Errorf("infer_api_url: %w", err)
	}
	return nil
}

// shareOrders opens the orders of documents: in memory, and in a store that replicas share, if there is one.
func (a *assembly) shareOrders() error {
	a.orders = orders.NewMemoryIn(a.memory, a.cfg.Limits.Tenants)
	a.po.Orders = a.orders
	if a.cfg.SharedState == "" {
		return nil
	}
	shared, err := redisorders.Open(redisorders.Options{
		URL: a.cfg.SharedState.Reveal(), Memory: a.orders, Log: a.log, Took: sharedSeconds(a.set),
	})
	if err != nil {
		return fmt.Errorf("shared_state: %w", err)
	}
	a.closers = append(a.closers, shared.Close)
	sharedMetrics(a.set, shared.Stats)
	shared.Connect(context.Background())
	shared.Follow()
	a.po.Orders = shared
	return a.set.Err()
}

// restoreState reads back what outlives the process, if a folder is set for it.
func (a *assembly) restoreState() error {
	if a.cfg.StateDir == "" {
		return nil
	}
	st, err := state.Open(a.cfg.StateDir, a.log)
	if err != nil {
		return fmt.Errorf("state_dir %q: %w", a.cfg.StateDir, err)
	}
	a.closers = append(a.closers, st.Close)
	if a.po.HashKey, err = state.Key(a.cfg.StateDir); err != nil {
		return fmt.Errorf("state_dir %q: %w", a.cfg.StateDir, err)
	}
	metrics.Read(a.set, "ragpilot_state_damages_total",
		"Records of the state on disk that were lost to damage when it was opened; 1 if the whole file was set aside.", st.Damages)
	back, err := st.Restore(a.orders, a.pilot)
	if err != nil {
		return fmt.Errorf("state_dir %q: %w", a.cfg.StateDir, err)
	}
	a.log.Info("state restored", "orders", back.Orders, "prompts", back.Plans, "skipped", back.Skipped)
	a.po.Orders = st.Orders(a.po.Orders)
	if a.po.Provider != nil { // how long ago its prompts were sent is not in the state, and they do not live long
		cleared(a.pilot, nil, nil)
		return a.set.Err()
	}
	a.po.Journal, a.po.Restored = st, back.Plans > 0
	return a.set.Err()
}

// makeProxy makes the proxy in front of the engine.
func (a *assembly) makeProxy() (err error) {
	cfg, live := a.cfg, a.Live
	po := a.po
	po.Tracer, po.Pilot, po.Index, po.Recorder = a.tracer, a.pilot, a.index, a.board
	po.Log, po.Memory, po.Transport = a.log, a.memory, a.Transport
	po.KeepTexts, po.Modulus, po.Window, po.Blocks = cfg.KeepTexts, cfg.ChunkModulus, cfg.Plan.Window, cfg.Recompute > 0
	po.MaxTenants, po.MaxSessions = cfg.Limits.Tenants, cfg.Limits.Sessions
	po.AllowedPaths, po.StoredObjects, po.TenantHeader = cfg.AllowedPaths, cfg.StoredObjects, cfg.TrustTenantHeader
	po.RequestID = server.RequestID
	if po.MissHeader, po.ReplicaHeader = cfg.MissHeader, cfg.ReplicaHeader; a.misses != nil {
		po.Diagnosis = a.misses
	}
	po.Live = func() (bool, float64) {
		now := live.Load()
		return now.Shadow, now.HoldOut
	}
	if po.Stabiliser, err = a.stabiliser(); err != nil {
		return err
	}
	if cfg.Compat {
		po.Compat = recorded.NewResults(a.memory, cfg.Limits.Tenants)
	}
	a.proxy, err = proxy.New(po)
	return err
}

// stabiliser makes what keeps the beginnings of prompts as they were; nil: no rule is on. Whether a chat template takes system messages
// behind others is not known, so the lines of an engine's prompts go into the user's messages if nothing else is said.
func (a *assembly) stabiliser() (*stabilise.Stabiliser, error) {
	if !a.cfg.Stabilise.Rules().Any() {
		return nil, nil
	}
	c := a.cfg.Stabilise.Config()
	c.Budget, c.MaxTenants = a.memory, a.cfg.Limits.Tenants
	if c.Place == stabilise.PlaceAuto && a.po.Provider == nil {
		c.Place = stabilise.PlaceUser
	}
	return stabilise.New(c)
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
	name := "default"
	if cfg.Compat { // the reference shows no document twice
		name = "most-reuse"
	}
	profile, err := profile.Load(cmp.Or(cfg.Profile, name))
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
	known = a.misses.Forget(tenant, session) || known
	if session == "" {
		known = a.index.Forget(tenant) || known
		remembered, err := a.forgetMemories(r.Context(), tenant)
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
