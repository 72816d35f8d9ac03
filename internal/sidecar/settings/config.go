package settings

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/ragpilot/ragpilot/internal/base/holdback"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/stabilise"
)

// Config says how a server runs. Start from [Default]: the zero Config is not valid. Fields are described in
// packaging/ragpilot.yaml, under their yaml names.
type Config struct {
	// Listen is the main address, host:port; port 0 takes a free one.
	Listen string `yaml:"listen"`
	// AllowAnonymous lets Listen be an address that other machines can reach without Keys. It is refused where the server holds
	// a key of the engine or of a provider: everyone who reaches the address could use it.
	AllowAnonymous bool `yaml:"allow_anonymous"`
	// AllowedHosts are names by which clients may ask, beside IP addresses, localhost and names without a dot. They are checked
	// only where there are neither Keys nor TLS: a web page can give this server's address a name of its own.
	AllowedHosts []string `yaml:"allowed_hosts"`
	// AllowedOrigins are the web pages that may ask, such as https://chat.example.com, or "*" for all; others are refused.
	AllowedOrigins []string `yaml:"allowed_origins"`
	// AdminAddr is the address of metrics, dashboard and profiles; empty: no such listener. It asks for no key.
	AdminAddr string `yaml:"admin_addr"`
	// AdminHosts are names by which AdminAddr may be asked, beside IP addresses and localhost.
	AdminHosts []string `yaml:"admin_hosts"`
	// Pprof serves profiles at /debug/pprof/ on AdminAddr.
	Pprof bool `yaml:"pprof"`
	// ExtProcAddr is the address of Envoy's external processing, over gRPC; empty: no such listener. It asks for no key.
	ExtProcAddr string `yaml:"ext_proc_addr"`
	// InferAPIURL is the engine's base URL. A user and password in it are sent to the engine in place of the client's
	// Authorization; [Config.String] hides the password.
	InferAPIURL string `yaml:"infer_api_url"`
	// InferAPIKey is the key that the engine asks for, sent in place of the client's Authorization; empty: that passes, if it
	// was not a key of this server.
	InferAPIKey Secret `yaml:"infer_api_key"`
	// InferAPIKeyFile is a file that holds the engine's key, in place of InferAPIKey; [Config.ReadSecrets] clears it.
	InferAPIKeyFile string `yaml:"infer_api_key_file"`
	// AllowedPaths are requests that are forwarded beside those that always are: "METHOD /v1/path"; a last segment of * stands
	// for anything.
	AllowedPaths []string `yaml:"allowed_paths"`
	// StoredObjects lets clients reach files, batches and stored answers with the server's own key for the engine or
	// provider. All clients, of all tenants, then share them.
	StoredObjects bool `yaml:"stored_objects"`
	// Engines are those behind InferAPIURL whose cache events are followed; none: no events are.
	Engines []Engine `yaml:"engines"`
	// Stateless keeps no index.
	Stateless bool `yaml:"stateless"`
	// Compat keeps to what was recorded of the reference in texts that are forwarded: the order of the documents in first tool results,
	// their layout, and notes that name nothing.
	Compat bool `yaml:"compat"`
	// CompatIncrementalOrder keeps the reference's order of reordered_contexts in later answers of /reorder, which is
	// that of the request and does not fit original_indices.
	CompatIncrementalOrder bool `yaml:"compat_incremental_order"`
	// Model is an option of the reference without effect here.
	Model string `yaml:"model"`
	// LogLevel is debug, info, warning or error.
	LogLevel string `yaml:"log_level"`
	// LogFormat is text or json.
	LogFormat string `yaml:"log_format"`
	// CloudProvider is anthropic, openai or minimax; empty: the engine at InferAPIURL.
	CloudProvider string `yaml:"cloud_provider"`
	// CloudBaseURL is where the provider is, or who speaks its API: a gateway of one's own, a compatible service. The path of a
	// request is appended. Empty: the provider's own address.
	CloudBaseURL string `yaml:"cloud_base_url"`
	// CloudAPIKey is the provider's key; empty: clients send their own.
	CloudAPIKey Secret `yaml:"cloud_api_key"`
	// CloudAPIKeyFile is a file that holds the provider's key, in place of CloudAPIKey; [Config.ReadSecrets] clears it.
	CloudAPIKeyFile string `yaml:"cloud_api_key_file"`
	// ExtendedCache asks the provider to keep its cache longer.
	ExtendedCache bool `yaml:"extended_cache"`
	// Prices are those of models, for the figures in money; none: there are no such figures.
	Prices []Price `yaml:"prices"`
	// Currency is what Prices are in. Amounts are labelled with it, nothing is converted.
	Currency string `yaml:"currency"`
	// ChunkModulus is the mean length of a deduplicated block in lines.
	ChunkModulus int `yaml:"chunk_modulus"`
	// Policy is the order policy, see contextpilot.PolicyNames; empty: the profile's.
	Policy string `yaml:"policy"`
	// Profile is a profile's name, or a file, see profile.Load; empty: default, or most-reuse with Compat. Of a profile, policy, limits and
	// the place of the best block hold for a server, which adds no order notes and makes references in its own way.
	Profile string `yaml:"profile"`
	// Plan says how prompts are planned.
	Plan Plan `yaml:"plan"`
	// Hold says when a prompt is held back while another one computes its beginning.
	Hold Hold `yaml:"hold"`
	// Stabilise says what is kept as it was at the beginning of prompts.
	Stabilise Stabilise `yaml:"stabilise"`
	// Workers is an option of the reference without effect here, see [Config.Warnings].
	Workers int `yaml:"workers"`
	// MaxTokens is an option of the reference that /health shows; it bounds nothing.
	MaxTokens int `yaml:"max_tokens"`
	// Shadow plans requests and measures, but forwards them as they came.
	Shadow bool `yaml:"shadow"`
	// HoldOut is the share of sessions, 0 to 1, whose requests are forwarded as they came, to compare with.
	HoldOut float64 `yaml:"hold_out"`
	// Recompute is for a ragpilot engine with --reuse blocks or hybrid: it receives where documents stand, and predictions count a document
	// that was sent before as this part of its tokens, above 0 and up to 1. With it Policy is retrieval if nothing else is said. 0: neither.
	Recompute float64 `yaml:"recompute"`
	// KeepTexts keeps the prompts of the last requests in memory, for the dashboard.
	KeepTexts bool `yaml:"keep_texts"`
	// DiagnosisBytes is the memory, of all tenants together, that is taken to compare prompts with earlier ones and find out why they were
	// not in the engine's cache. It comes on top of Limits.MemoryBytes, and at most a quarter of that is taken. 0: they are not compared.
	DiagnosisBytes int64 `yaml:"diagnosis_bytes"`
	// MissHeader says in a header of each answer why its prompt misses the cache, as far as earlier prompts show it. The answer waits until
	// they are compared.
	MissHeader bool `yaml:"miss_header"`
	// ReplicaHeader is the header of answers by which a balancer behind InferAPIURL names the engine that answered; empty: there is none.
	ReplicaHeader string `yaml:"replica_header"`
	// StateDir is a folder for what a restart should know: orders chosen and prompts sent, no texts. Empty: a restart
	// begins anew.
	StateDir string `yaml:"state_dir"`
	// Memory keeps what clients of Mem0's API want to be remembered.
	Memory Memory `yaml:"memory"`
	// SharedState is a redis:// or rediss:// URL of a Redis or Valkey that replicas share; empty: this is the only one.
	SharedState Secret `yaml:"shared_state"`
	// Keys are those that clients may present; none: everybody may ask.
	Keys []Key `yaml:"keys"`
	// TrustTenantHeader names a header that holds the tenant of requests whose key has none; empty: no header is
	// trusted. Every client that reaches the server can then claim any tenant.
	TrustTenantHeader string `yaml:"trust_tenant_header"`
	// CacheSaltKey is a secret from which each tenant's cache_salt is made, so that engines that take one (vLLM, SGLang) share
	// nothing between tenants; empty: they get none. Replicas must have the same.
	CacheSaltKey Secret `yaml:"cache_salt_key"`
	// CacheSaltKeyFile is a file that holds it, in place of CacheSaltKey; [Config.ReadSecrets] clears it.
	CacheSaltKeyFile string `yaml:"cache_salt_key_file"`
	// TLS switches the main listener to TLS.
	TLS TLS `yaml:"tls"`
	// Trace says where spans go; see package tracing.
	Trace Trace `yaml:"trace"`
	// Limits bound what clients may send and what is remembered of them.
	Limits Limits `yaml:"limits"`
	// Timeouts bound how long things may take.
	Timeouts Timeouts `yaml:"timeouts"`
}

// Key is a secret that clients present as "Authorization: Bearer KEY" or "x-api-key: KEY".
type Key struct {
	// Tenant is whose key it is; several keys may have the same. Empty: the one tenant of most servers.
	Tenant string `yaml:"tenant"`
	// Key is the secret itself.
	Key Secret `yaml:"key"`
	// File is a file that holds the secret, in place of Key; [Config.ReadSecrets] clears it.
	File string `yaml:"file"`
}

// Plan says how prompts are planned.
type Plan struct {
	// Window is how long a prompt that begins with documents waits for others, to be planned together with them; 0: it
	// does not wait.
	Window time.Duration `yaml:"window"`
}

// Hold says when a prompt is held back while another one computes its beginning, and would compute it again.
type Hold struct {
	// Until is what a held prompt waits for: answer (the end of the other one's answer: engines whose slots share nothing), first-token
	// (its first piece: engines with a paged cache), auto (answer for a llama.cpp server with several slots, else off) or off.
	Until string `yaml:"until"`
	// Longest bounds how long a prompt is held.
	Longest time.Duration `yaml:"longest"`
	// Tokens is how many tokens the other one must be computing, as estimated at four bytes each.
	Tokens int `yaml:"tokens"`
}

// Stabilise are the rules of package stabilise, each off by default.
type Stabilise struct {
	// Tools keep their order in a conversation; new ones come behind.
	Tools bool `yaml:"tools"`
	// Schemas: the members of tools' definitions stand in a fixed order.
	Schemas bool `yaml:"schemas"`
	// Volatile: lines with the time, and those that a pattern matches, leave the system text.
	Volatile bool `yaml:"volatile"`
	// Patterns are regular expressions that are matched with each line of system texts.
	Patterns []string `yaml:"patterns"`
	// Memories leave the system text.
	Memories bool `yaml:"memories"`
	// Markers say where memories begin: "<name>", "## Name" or "Name:"; none: stabilise.DefaultMarkers.
	Markers []string `yaml:"markers"`
	// Place is how what leaves the system text is sent: system (as a system message of its own), user (as a note in a user's message) or
	// auto (system for a provider that takes it, else user).
	Place string `yaml:"place"`
}

// Rules returns the rules that are on.
func (s *Stabilise) Rules() stabilise.Rules {
	return stabilise.Rules{Tools: s.Tools, Schemas: s.Schemas, Volatile: s.Volatile, Memories: s.Memories}
}

// Config returns what a stabiliser is made from, but for its memory.
func (s *Stabilise) Config() stabilise.Config {
	c := stabilise.Config{Rules: s.Rules(), Patterns: s.Patterns}
	if len(s.Markers) > 0 {
		c.Markers = s.Markers
	}
	c.Place, _ = stabilise.ParsePlace(s.Place) // validated
	return c
}

// What Hold.Until can be.
const (
	HoldAuto       = "auto"
	HoldOff        = "off"
	HoldFirstToken = "first-token"
	HoldAnswer     = "answer"
)

// TLS names PEM files. Cert and Key are given together; they are read again on [Server.Reload].
type TLS struct {
	// Cert is the certificate, which is served with Key.
	Cert string `yaml:"cert"`
	// Key is the certificate's key.
	Key string `yaml:"key"`
	// ClientCA holds the authorities of client certificates; if given, every client must have one.
	ClientCA string `yaml:"client_ca"`
}

// Trace sends traces of OpenTelemetry to a collector.
type Trace struct {
	// Endpoint is the URL of a collector that takes OTLP over HTTP; without a path it is asked at /v1/traces. Empty: off.
	Endpoint string `yaml:"endpoint"`
	// Headers go with each request to the collector: name=value,name=value, with values in percent encoding.
	Headers Secret `yaml:"headers"`
	// HeadersFile is a file that holds Headers, in place of them; [Config.ReadSecrets] clears it.
	HeadersFile string `yaml:"headers_file"`
	// Sample is the share of traces, 0 to 1, that are recorded where the client's traceparent does not decide.
	Sample float64 `yaml:"sample"`
}

// Limits are all at least 1, but RequestsPerSecond and ConcurrentRequests.
type Limits struct {
	// BodyBytes bounds the body of a request; more is 413. For bodies that come over ExtProcAddr it needs a restart.
	BodyBytes int64 `yaml:"body_bytes"`
	// InFlightBytes bounds the bodies that are in memory at a time, those that pass unread left out. A body that finds
	// no room waits for Timeouts.InFlight; then it is 503. One that is alone always has room.
	InFlightBytes int64 `yaml:"in_flight_bytes"`
	// MemoryBytes bounds what is remembered of requests, of all tenants together. It needs a restart.
	MemoryBytes int64 `yaml:"memory_bytes"`
	// HeaderBytes bounds request line and headers; more (by 4 KiB, a slack of net/http) is 431. It needs a restart.
	HeaderBytes int `yaml:"header_bytes"`
	// Contexts bounds the contexts of one request.
	Contexts int `yaml:"contexts"`
	// Blocks bounds the blocks of one request, in all its contexts.
	Blocks int `yaml:"blocks"`
	// Sessions bounds the sessions of a tenant that X-ContextPilot-Session names and /forget can name. It needs a restart.
	Sessions int `yaml:"sessions"`
	// Tenants bounds the tenants that have state of their own. It needs a restart.
	Tenants int `yaml:"tenants"`
	// Connections bounds the open connections of clients; one more is answered 503 and closed.
	Connections int `yaml:"connections"`
	// RequestsPerSecond bounds the requests of each key, or of all clients where there are no keys; more are 429. 0: no bound.
	RequestsPerSecond float64 `yaml:"requests_per_second"`
	// ConcurrentRequests bounds the requests of each key that are being answered; one more is 429. 0: no bound.
	ConcurrentRequests int `yaml:"concurrent_requests"`
}

// Timeouts are all more than 0, but InFlight, LameDuck and Drain, which may be 0. Write ends an answer that its client does
// not take; the others end none that is being sent.
type Timeouts struct {
	// ReadHeader is from the first byte of a connection or request to the end of its headers.
	ReadHeader time.Duration `yaml:"read_header"`
	// ReadBody is from the end of the headers to the end of the body; later is 408.
	ReadBody time.Duration `yaml:"read_body"`
	// InFlight is how long a body may wait for room, see Limits.InFlightBytes; later is 503. It is part of ReadBody.
	InFlight time.Duration `yaml:"in_flight"`
	// Write is how long a client may take none of an answer that is there for it; then the connection is closed. How
	// long an engine says nothing does not count.
	Write time.Duration `yaml:"write"`
	// Idle is how long a connection may wait for its next request.
	Idle time.Duration `yaml:"idle"`
	// UpstreamConnect is for connecting to the engine.
	UpstreamConnect time.Duration `yaml:"upstream_connect"`
	// UpstreamHeader is from the request to the status line of the engine's answer.
	UpstreamHeader time.Duration `yaml:"upstream_header"`
	// LameDuck is how long the server goes on taking requests after the signal to stop, with /readyz at 503, so that
	// those who send them see it and go elsewhere.
	LameDuck time.Duration `yaml:"lame_duck"`
	// Drain is how long running answers may go on after the listener has closed.
	Drain time.Duration `yaml:"drain"`
}

// Default is the configuration of a server without any settings. Where the reference has the option, its default is the
// reference's, except for Listen: the reference listens on all addresses.
func Default() Config {
	return Config{
		Listen:         "127.0.0.1:8765",
		AdminAddr:      "127.0.0.1:9765",
		InferAPIURL:    "http://localhost:30000",
		LogLevel:       "info",
		LogFormat:      "text",
		ChunkModulus:   13,
		DiagnosisBytes: 64 << 20,
		Trace:          Trace{Sample: 1},
		Stabilise:      Stabilise{Place: stabilise.PlaceNames[stabilise.PlaceAuto]},
		Hold:           Hold{Until: HoldAuto, Longest: holdback.DefaultLongest, Tokens: holdback.DefaultTokens},
		Memory:         Memory{Extract: "verbatim", Embedder: memory.AutoEmbedder},
		Limits: Limits{
			BodyBytes:     64 << 20,
			InFlightBytes: 1 << 30,
			MemoryBytes:   256 << 20,
			HeaderBytes:   64 << 10,
			Contexts:      4096,
			Blocks:        1_000_000,
			Sessions:      100_000,
			Tenants:       1024,
			Connections:   8192,
		},
		Timeouts: Timeouts{
			ReadHeader:      10 * time.Second,
			ReadBody:        time.Minute,
			InFlight:        2 * time.Second,
			Write:           5 * time.Minute,
			Idle:            2 * time.Minute,
			UpstreamConnect: 10 * time.Second,
			UpstreamHeader:  time.Hour, // the reference's only timeout
			Drain:           30 * time.Second,
		},
	}
}

// String shows the configuration without secrets.
func (c Config) String() string {
	type plain Config // without String
	c.InferAPIURL = redacted(c.InferAPIURL)
	c.Trace.Endpoint = redacted(c.Trace.Endpoint)
	c.Engines = slices.Clone(c.Engines)
	for i := range c.Engines {
		c.Engines[i].URL = redacted(c.Engines[i].URL)
	}
	return fmt.Sprintf("%+v", plain(c))
}

// LogValue is what slog shows: [Config.String], whatever the format.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// clone copies what Config points to.
func (c Config) clone() Config {
	c.Keys, c.Prices, c.Engines = slices.Clone(c.Keys), slices.Clone(c.Prices), slices.Clone(c.Engines)
	for _, list := range []*[]string{
		&c.AllowedHosts, &c.AllowedOrigins, &c.AdminHosts, &c.AllowedPaths, &c.Stabilise.Patterns, &c.Stabilise.Markers,
	} {
		*list = slices.Clone(*list)
	}
	return c
}

// On reports whether TLS is wanted.
func (t TLS) On() bool { return t != (TLS{}) }

// baseBytes is what the program takes before anything is remembered: code, metrics, connections and their buffers.
const baseBytes = 128 << 20

// modelBytes is what the sentence model of memories takes: its weights and what it computes with.
const modelBytes = 128 << 20

// Diagnosis is the memory in bytes that is taken to compare prompts with earlier ones.
func (c Config) Diagnosis() int64 { return min(c.DiagnosisBytes, c.Limits.MemoryBytes/4) }

// MemoryLimit is the Go runtime's memory limit that fits the settings: what is remembered, with a quarter more for what the
// allocator cannot use, twice the bodies in flight, which are held as they came and as they are sent, the sentence model if
// memories are found by it, and a base. Near it garbage is collected more often, so it is more than is ever needed for long.
func (c Config) MemoryLimit() int64 {
	limit := baseBytes + (c.Limits.MemoryBytes+c.Diagnosis())/4*5 + 2*c.Limits.InFlightBytes
	if c.Memory.Dir != "" && c.Memory.Embedding().InProcess() {
		limit += modelBytes
	}
	return limit
}

// LimitMemory sets the Go runtime's memory limit, unless the variable GOMEMLIMIT of the environment does.
func (c Config) LimitMemory(lookup func(string) (string, bool), set func(int64) int64, log *slog.Logger) {
	if given, ok := lookup("GOMEMLIMIT"); ok && given != "" {
		log.Info("memory limit of the Go runtime", "from", "GOMEMLIMIT", "value", given)
		return
	}
	limit := c.MemoryLimit()
	set(limit)
	log.Info("memory limit of the Go runtime", "from", "limits", "bytes", limit)
}
