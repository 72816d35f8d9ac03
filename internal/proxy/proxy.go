package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"log"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/lru"
	"github.com/ragpilot/ragpilot/internal/promptcache"
	"github.com/ragpilot/ragpilot/internal/tenant"
)

// Index is what the proxy shares with the reference's index endpoints (package httpapi).
type Index interface {
	// HasIndex tells whether the tenant has an index, so that engines are to report evictions by request ID.
	HasIndex(tenant string) bool
	// Track makes a request ID known that only stands in /v1 traffic.
	Track(tenant, requestID string)
	// RecordTTFT takes the time to the first byte of an answer, and the characters not sent.
	RecordTTFT(tenant string, d time.Duration, charsSaved int)
}

// Options configure a Proxy. Upstream and Pilot are required.
type Options struct {
	Upstream  *url.URL
	Pilot     *contextpilot.Pilot
	Index     Index                 // nil: none (stateless)
	Provider  *promptcache.Provider // a cloud API as upstream, its address wins; nil: an engine of one's own
	Transport http.RoundTripper     // nil: NewTransport(10 s, 1 h)
	Log       *slog.Logger          // nil: slog.Default
	Recorder  Recorder              // nil: none
	Modulus   int                   // of block de-duplication; 0: 13
	// Live tells the settings that may change while the proxy runs: whether to plan only, but forward what came, and the
	// share of sessions, 0…1, that pass as they are. Nil: neither.
	Live        func() (shadow bool, holdOut float64)
	MaxMemory   int              // bytes of remembered conversations for each tenant; 0: 256 MiB
	MaxSessions int              // named sessions of a tenant that can be forgotten one by one; 0: 100,000
	MaxTenants  int              // 0: 64
	Now         func() time.Time // nil: time.Now
}

// Recorder receives one report for each answered request.
type Recorder interface {
	Answered(Report)
}

// Report is what is known of a request when its answer has ended.
type Report struct {
	Tenant, Path string // Path is one of the proxy's own
	Planned      bool   // not switched off, not held out
	HeldOut      bool
	TTFT         time.Duration // to the first byte of the answer
	Total        time.Duration
	Prompt       int // tokens, -1: not reported
	Cached       int // of them from the engine's cache, -1: not reported
	CharsSaved   int
	Failed       bool
}

// Proxy is an http.Handler for /v1/* and /cloud/stats. Safe for concurrent use.
type Proxy struct {
	opt       Options
	transport http.RoundTripper
	buffers   pool
	errorLog  *log.Logger
	mu        sync.Mutex
	tenants   *lru.Cache[string, *state]
	scopes    *lru.Cache[string, contextpilot.Scope] // by request ID
	mux       *http.ServeMux
}

// maxPlans bounds the plans whose eviction can be told to the pilot.
const maxPlans = 200_000

// state is what is kept of a tenant.
type state struct {
	memo  *memo
	mu    sync.Mutex
	index *toolIndex // of tool results
	// sessions holds the last turn of those that clients gave a name.
	sessions *lru.Cache[string, *turn]
}

// New returns a Proxy.
func New(o Options) (*Proxy, error) {
	if o.Provider != nil {
		o.Upstream = o.Provider.Base()
	}
	if o.Upstream == nil || o.Upstream.Host == "" {
		return nil, errors.New("proxy: Options.Upstream: an address with a host is needed")
	}
	if o.Pilot == nil {
		return nil, errors.New("proxy: Options.Pilot is nil")
	}
	if o.Live == nil {
		o.Live = func() (bool, float64) { return false, 0 }
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxMemory <= 0 {
		o.MaxMemory = 256 << 20
	}
	if o.MaxSessions <= 0 {
		o.MaxSessions = 100_000
	}
	if o.MaxTenants <= 0 {
		o.MaxTenants = 64
	}
	p := &Proxy{
		opt: o, transport: o.Transport, mux: http.NewServeMux(),
		errorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
		tenants:  lru.New[string, *state](o.MaxTenants), scopes: lru.New[string, contextpilot.Scope](maxPlans),
	}
	if p.transport == nil {
		p.transport = NewTransport(10*time.Second, time.Hour)
	}
	p.mux.HandleFunc("POST /v1/chat/completions", p.chat(openAI))
	p.mux.HandleFunc("POST /v1/messages", p.chat(anthropic))
	p.mux.HandleFunc("POST /v1/responses", p.chat(responses))
	p.mux.HandleFunc("POST /v1/completions", p.completions)
	p.mux.HandleFunc("/v1/", p.pass)
	p.mux.HandleFunc("GET /cloud/stats", p.cloudStats)
	return p, nil
}

// ServeHTTP answers one request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// pass forwards a request as it is.
func (p *Proxy) pass(w http.ResponseWriter, r *http.Request) {
	p.forward(w, r, outgoing{base: p.opt.Upstream, header: p.credentials(r), failed: "Inference engine backend error"})
}

// cloudStats tells what is known of the provider's cache.
func (p *Proxy) cloudStats(w http.ResponseWriter, r *http.Request) {
	if p.opt.Provider == nil {
		writeError(w, http.StatusNotFound, "Cloud proxy mode not enabled. Start with --cloud-provider.")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(p.opt.Provider.Stats(tenantOf(r)))
}

// state returns what is kept of the request's tenant.
func (p *Proxy) state(name string) *state {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.tenants.Get(name)
	if !ok {
		s = &state{memo: newMemo(p.opt.MaxMemory), sessions: lru.New[string, *turn](p.opt.MaxSessions)}
		p.tenants.Put(name, s)
	}
	return s
}

// Forget drops what is kept of a tenant's conversation, as named by SessionHeader, or with an empty name all of the
// tenant's. It tells whether there was anything.
func (p *Proxy) Forget(tenant, session string) bool {
	p.mu.Lock()
	s, ok := p.tenants.Get(tenant)
	if ok && session == "" {
		p.tenants.Delete(tenant)
	}
	p.mu.Unlock()
	if !ok || session == "" {
		return ok
	}
	s.mu.Lock()
	last, ok := s.sessions.Get(session)
	s.sessions.Delete(session)
	s.mu.Unlock()
	if ok {
		s.memo.forget(last)
	}
	return ok
}

// Evicted takes request IDs that a tenant's engine reports as evicted.
func (p *Proxy) Evicted(tenant string, ids []string) {
	for _, id := range ids {
		p.mu.Lock()
		scope, ok := p.scopes.Get(id)
		ok = ok && scope.Tenant == tenant
		if ok {
			p.scopes.Delete(id)
		}
		p.mu.Unlock()
		if ok {
			p.opt.Pilot.Observe(contextpilot.Event{Kind: contextpilot.Gone, Scope: scope, Request: id})
		}
	}
}

// read takes a whole body in. It answers what is too long or broken off itself; ok is false then.
func (p *Proxy) read(w http.ResponseWriter, r *http.Request) (raw []byte, ok bool) {
	var large *http.MaxBytesError
	var text bytes.Buffer
	if n := r.ContentLength; n > 0 && n < 1<<20 {
		text.Grow(int(n) + bytes.MinRead) // a length is only a claim: more is not taken for granted
	}
	_, err := text.ReadFrom(r.Body)
	raw = text.Bytes()
	switch {
	case errors.As(err, &large):
		writeError(w, http.StatusRequestEntityTooLarge, "Request body is larger than the limit")
	case err != nil:
		writeError(w, http.StatusBadRequest, "Request body could not be read: "+err.Error())
	default:
		return raw, true
	}
	return nil, false
}

func tenantOf(r *http.Request) string { return tenant.From(r.Context()) }

// sessionOf names the conversation for the hold-out: the client's header, or how it begins.
func sessionOf(ctl *control, b *body) string {
	if ctl.session != "" {
		return ctl.session
	}
	var s strings.Builder
	for _, it := range b.items {
		s.Write(b.raw[it.from:it.to])
		if it.value.Get("role").Str == "user" {
			break
		}
	}
	return s.String()
}

// credentials returns the headers that go upstream instead of the client's.
func (p *Proxy) credentials(*http.Request) http.Header {
	if p.opt.Provider == nil {
		return nil
	}
	return p.opt.Provider.Headers()
}
