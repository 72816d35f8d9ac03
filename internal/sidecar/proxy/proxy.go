package proxy

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/internal/base/budget"
	"github.com/ragpilot/ragpilot/internal/base/holdback"
	"github.com/ragpilot/ragpilot/internal/prompt/orders"
	"github.com/ragpilot/ragpilot/internal/prompt/repeat"
	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
	"github.com/ragpilot/ragpilot/internal/sidecar/reqbody"
	"github.com/ragpilot/ragpilot/internal/sidecar/tenant"
	"github.com/ragpilot/ragpilot/internal/sidecar/tracing"
	"github.com/ragpilot/ragpilot/internal/sidecar/upstreamerr"
	"github.com/ragpilot/ragpilot/stabilise"
)

// Index is what the proxy shares with the reference's index endpoints (package httpapi).
type Index interface {
	// HasIndex reports whether the tenant has an index, so that engines are to report evictions by request ID.
	HasIndex(tenant string) bool
	// Track makes a request ID known that only stands in /v1 traffic.
	Track(tenant, requestID string)
	// RecordTTFT takes the time to the first byte of an answer, and the characters not sent.
	RecordTTFT(tenant string, d time.Duration, charsSaved int)
}

// Options configure a Proxy. Required are Upstream, unless there is a Provider, and Pilot, Transport, Log, Live, RequestID, Memory and
// MaxTenants.
type Options struct {
	Upstream  *url.URL
	Pilot     *contextpilot.Pilot
	Index     Index                // nil: none (stateless)
	Provider  *cloudcache.Provider // a cloud API as upstream, its address wins; nil: an engine of one's own
	Key       string               // that the engine asks for, sent in place of the client's; "": see Upstream's user, if any
	SaltKey   string               // secret from which each tenant's cache_salt is made, for engines that take one; "": none is sent
	Blocks    bool                 // chats are sent with the places of their documents, see docs/block-reuse.md
	Transport http.RoundTripper    // see NewTransport
	Log       *slog.Logger
	Recorder  Recorder        // nil: none
	Tracer    *tracing.Tracer // nil: none
	KeepTexts bool            // give bodies to the Recorder
	// RequestID returns the ID under which the server logs a request; "": it has none.
	RequestID func(context.Context) string
	Modulus   int // of block de-duplication; 0: 13
	// Compat keeps to what was recorded of another server: the order of the documents in first tool results, which it chooses, their
	// layout, and notes that name nothing. Nil: tool results keep their order.
	Compat Compat
	// HashKey is mixed into hashes that are shown, such as the name of a session that has none; nil: a random key.
	HashKey []byte
	// Orders remembers which orders were chosen, for restarts and other replicas; nil: in memory.
	Orders orders.Store
	// Diagnosis finds out why prompts were not in the engine's cache; nil: nothing does.
	Diagnosis Diagnosis
	// MissHeader compares each prompt with earlier ones before its answer passes on, and says what is lost in a header of the answer.
	MissHeader bool
	// ReplicaHeader is the header of answers that names the replica which gave them; "": there is none.
	ReplicaHeader string
	// Journal keeps what the pilot's index must know after a restart; nil: none.
	Journal Journal
	// Restored says that the pilot's index is from before a restart: it is trusted once the first answers say that the
	// engine still holds what it says, and cleared otherwise.
	Restored bool
	// Live returns the settings that may change while the proxy runs: whether to plan only, but forward what came, and the
	// share of sessions, 0…1, that pass as they are.
	Live func() (shadow bool, holdOut float64)
	// Caches follows what the engine says of its caches; nil: none.
	Caches Caches
	// Window is how long a prompt that begins with documents waits for others, to be planned together; 0: not at all.
	Window time.Duration
	// Stabiliser keeps the beginnings of prompts as they were; nil: nothing does.
	Stabiliser *stabilise.Stabiliser
	// Hold holds prompts back while another one computes their beginning; nil: nothing does.
	Hold *holdback.Gate
	// AllowedPaths are requests that are forwarded beside the usual ones: "METHOD /v1/path", with * as the last segment for
	// any.
	AllowedPaths []string
	// StoredObjects lets clients reach files, batches and stored answers with the server's own key.
	StoredObjects bool
	// TenantHeader is a header that names tenants to us, and is not for cloud providers; empty: there is none.
	TenantHeader string
	Memory       *budget.Budget // of all that is remembered of tenants
	MaxSessions  int            // named sessions of a tenant that can be forgotten one by one; 0: 100,000
	MaxTenants   int
	Now          func() time.Time // nil: time.Now
}

// Journal notes what the index of prompts must know after a restart. Its methods are called concurrently.
type Journal interface {
	conversation.Journal
	// Cleared is called when engines that serve some models (none: all) hold nothing any more.
	Cleared(models []string)
}

// Compat chooses the order of the documents in conversations' first tool results.
type Compat interface {
	// Order returns what orders a tenant's results by the documents' contents; nil if the context has ended.
	Order(tenant string, alpha float64, linkage string, shadow bool) func(context.Context, []conversation.Sum) []int
	// Forget drops what is remembered of a tenant.
	Forget(tenant string)
}

// Recorder receives one report for each answered request.
type Recorder interface {
	Answered(Report)
}

// Report is what is known of a request when its answer has ended. Numbers of tokens are -1 if they are not known.
type Report struct {
	ID           string // under which the engine knows the request, or one of our own
	At           time.Time
	Tenant, Path string // Path is one of the proxy's own
	Session      string // the client's name for it, or a hash of how it begins
	Model        string
	Planned      bool    // not switched off, not held out
	HeldOut      bool    // forwarded as it came, to compare with
	Share        float64 // of sessions that were held out when it came
	Shadow       bool    // planned, but forwarded as it came: what was done would have been done
	Carried      bool    // forwarded as its conversation began, though the settings are others now: it compares with nothing
	Failed       bool
	TTFT         time.Duration // to the first byte of the answer
	Planning     time.Duration // until the request could be forwarded; what it was held comes behind that
	Total        time.Duration
	Prompt       int // tokens of the whole prompt
	Cached       int // of them from the engine's cache
	Predicted    int // that the index expected there
	// Usage is the same as a cloud provider counts it, and more of it.
	Usage cloudcache.Usage
	// Scope is that whose index the beginning of the prompt is in; nil: none, there are no documents at the front.
	Scope      *contextpilot.Scope
	Documents  int // found in texts that were looked at
	LeftOut    int // documents, and single results, that stand further up
	Replaced   int // blocks of lines
	CharsSaved int
	Orders     []Order
	Stabilised stabilise.Stats // what the stabiliser did, or in shadow mode would have done
	// Before and After are the bodies as they came and went, in shadow mode as it would have gone; nil unless
	// Options.KeepTexts.
	Before, After []byte
}

// Order is how the documents of one text were put, numbered as they came.
type Order struct {
	Where string
	Sent  []int
}

// Proxy is an http.Handler for /v1/* and /cloud/stats. Safe for concurrent use.
type Proxy struct {
	opt       Options
	transport http.RoundTripper
	buffers   pool
	errorLog  *log.Logger
	auth      string // Authorization that the engine asks for; "": the client's passes
	engine    *conversation.Engine
	trust     trust
	mux       *http.ServeMux
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
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.HashKey == nil {
		o.HashKey = make([]byte, 32)
		rand.Read(o.HashKey)
	}
	p := &Proxy{
		opt: o, transport: o.Tracer.Transport(upstreamerr.Transport(o.Transport)), mux: http.NewServeMux(),
		errorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	}
	if o.Provider == nil {
		p.auth = authorization(o.Key, o.Upstream.User)
	}
	co := conversation.Options{
		Budget: o.Memory, Orders: o.Orders, Journal: o.Journal, Expire: p.Expire, Modulus: o.Modulus, MaxSessions: o.MaxSessions,
		MaxTenants: o.MaxTenants, Log: o.Log, Encode: quote,
	}
	if o.Window > 0 {
		co.Plan = (&planWindow{pilot: o.Pilot, wait: o.Window, limit: maxWindow}).Plan
	}
	var err error
	if p.engine, err = conversation.New(o.Pilot, co); err != nil {
		return nil, err
	}
	if o.Restored {
		p.trust.left = trustAnswers
	}
	p.route()
	return p, nil
}

// cloudStats answers with what is known of the provider's cache.
func (p *Proxy) cloudStats(w http.ResponseWriter, r *http.Request) {
	if p.opt.Provider == nil {
		writeError(w, http.StatusNotFound, "Cloud proxy mode not enabled. Start with --cloud-provider.")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(p.opt.Provider.Stats(tenantOf(r)))
}

// Forget drops what is kept of a tenant's conversation, as named by SessionHeader, or with an empty name all of the
// tenant's, the index of its prompts too. Messages that another named conversation has sent too are kept for that one. It reports
// whether there was anything.
func (p *Proxy) Forget(tenant, session string) bool {
	if session == "" && p.opt.Compat != nil {
		p.opt.Compat.Forget(tenant)
	}
	stabilised := p.opt.Stabiliser != nil && p.opt.Stabiliser.Forget(tenant, SessionName(session))
	return p.engine.Forget(tenant, SessionName(session)) || stabilised
}

// Evicted takes request IDs that a tenant's engine reports as evicted, as the engine names them.
func (p *Proxy) Evicted(tenant string, ids []string) { p.engine.Evicted(tenant, ids...) }

// Expire takes out of the index what a cloud provider does not hold any more: prompts that were not read within their
// time to live. It is called before each plan; what else looks at the index may call it too. An engine of one's own
// reports its evictions, see [Proxy.Evicted].
func (p *Proxy) Expire() {
	if p.opt.Provider == nil {
		return
	}
	for _, name := range p.opt.Provider.Ended() {
		tenant, id, _ := strings.Cut(name, "\x00")
		p.engine.Ended(tenant, id)
	}
}

// read takes a whole body in. It answers what is too long or broken off itself; ok is false then.
func (p *Proxy) read(w http.ResponseWriter, r *http.Request) (raw []byte, ok bool) {
	_, span := p.opt.Tracer.Start(r.Context(), "read")
	defer span.End()
	var large *http.MaxBytesError
	var encoding *reqbody.EncodingError
	raw, err := reqbody.ReadAll(r)
	span.Int(tracing.RequestBytes, len(raw))
	switch {
	case errors.As(err, &large):
		writeError(w, http.StatusRequestEntityTooLarge, "Request body is larger than the limit")
	case errors.As(err, &encoding):
		w.Header().Set("Accept-Encoding", reqbody.Encodings)
		writeError(w, http.StatusUnsupportedMediaType, "Request body could not be read: "+err.Error())
	case err != nil:
		writeError(w, http.StatusBadRequest, "Request body could not be read: "+err.Error())
	default:
		return raw, true
	}
	return nil, false
}

func tenantOf(r *http.Request) string { return tenant.From(r.Context()) }

// shown returns the hash of a session's name, or of how it begins, as logs, traces and the dashboard have it. It is made with a key: what
// a short conversation begins with could be guessed from a plain one.
func (p *Proxy) shown(session string) string {
	if session == "" {
		return ""
	}
	h := hmac.New(sha256.New, p.opt.HashKey)
	_, _ = io.WriteString(h, session)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// sessionOf names the conversation: the client's header, or a hash of how it begins.
func sessionOf(ctl *control, b *body) string {
	if ctl.session != "" {
		return ctl.session
	}
	s := xxh3.New()
	for i, it := range b.items {
		_, _ = s.WriteString(repeat.WithoutIDs(b.root.Raw[it.from-b.root.Index : it.to-b.root.Index]))
		if b.Role(i) == conversation.User {
			break
		}
	}
	return fmt.Sprintf("%016x", s.Sum64())
}

// credentials returns the headers that go upstream instead of the client's. A client that knows which version of the API
// it speaks keeps it.
func (p *Proxy) credentials(r *http.Request) http.Header {
	if p.opt.Provider == nil {
		return nil
	}
	h := p.opt.Provider.Headers()
	if r.Header.Get("Anthropic-Version") != "" {
		h.Del("Anthropic-Version")
	}
	return h
}
