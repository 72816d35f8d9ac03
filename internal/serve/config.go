package serve

import (
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Config says how a server runs. Start from [Default]: the zero Config is not valid. Fields are described in
// packaging/ragpilot.yaml, under their yaml names.
type Config struct {
	// Listen is the main address, host:port; port 0 takes a free one.
	Listen string `yaml:"listen"`
	// AdminAddr is the address of metrics and pprof; empty: no such listener.
	AdminAddr string `yaml:"admin_addr"`
	// InferAPIURL is the engine's base URL. It may hold a password, which [Config.String] hides.
	InferAPIURL string `yaml:"infer_api_url"`
	// Stateless keeps no index.
	Stateless bool `yaml:"stateless"`
	// Model names the chat template.
	Model string `yaml:"model"`
	// LogLevel is debug, info, warning or error.
	LogLevel string `yaml:"log_level"`
	// LogFormat is text or json.
	LogFormat string `yaml:"log_format"`
	// CloudProvider is anthropic, openai or minimax; empty: the engine at InferAPIURL.
	CloudProvider string `yaml:"cloud_provider"`
	// CloudAPIKey is the provider's key; empty: clients send their own.
	CloudAPIKey Secret `yaml:"cloud_api_key"`
	// CloudAPIKeyFile is a file that holds the provider's key, in place of CloudAPIKey; [Config.ReadSecrets] clears it.
	CloudAPIKeyFile string `yaml:"cloud_api_key_file"`
	// ExtendedCache asks the provider to keep its cache longer.
	ExtendedCache bool `yaml:"extended_cache"`
	// ChunkModulus is the mean length of a deduplicated block in lines.
	ChunkModulus int `yaml:"chunk_modulus"`
	// Policy is the order policy, see contextpilot.PolicyNames; empty: the default one.
	Policy string `yaml:"policy"`
	// Workers and MaxTokens are options of the reference without effect here, see [Config.Warnings].
	Workers   int `yaml:"workers"`
	MaxTokens int `yaml:"max_tokens"`
	// Shadow plans requests and measures, but forwards them as they came.
	Shadow bool `yaml:"shadow"`
	// HoldOut is the share of requests, 0 to 1, that is forwarded as it came, to compare with.
	HoldOut float64 `yaml:"hold_out"`
	// KeepTexts keeps the prompts of the last requests in memory, for the dashboard.
	KeepTexts bool `yaml:"keep_texts"`
	// StateDir is a folder for what a restart should know: orders chosen and prompts sent, no texts. Empty: a restart
	// begins anew.
	StateDir string `yaml:"state_dir"`
	// SharedState is a redis:// or rediss:// URL of a Redis or Valkey that replicas share; empty: this is the only one.
	SharedState Secret `yaml:"shared_state"`
	// Keys are those that clients may present; none: everybody may ask.
	Keys []Key `yaml:"keys"`
	// TrustTenantHeader names a header that holds the tenant of requests whose key has none; empty: no header is
	// trusted. Whoever can reach the server can then claim any tenant.
	TrustTenantHeader string `yaml:"trust_tenant_header"`
	// TLS switches the main listener to TLS.
	TLS TLS `yaml:"tls"`
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

// TLS names PEM files. Cert and Key are given together; they are read again on [Server.Reload].
type TLS struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
	// ClientCA holds the authorities of client certificates; if given, every client must have one.
	ClientCA string `yaml:"client_ca"`
}

// Limits are all at least 1.
type Limits struct {
	// BodyBytes bounds the body of a request; more is 413.
	BodyBytes int64 `yaml:"body_bytes"`
	// HeaderBytes bounds request line and headers; more (by 4 KiB, a slack of net/http) is 431. It needs a restart.
	HeaderBytes int `yaml:"header_bytes"`
	// Contexts bounds the contexts of one request.
	Contexts int `yaml:"contexts"`
	// Blocks bounds the blocks of one request, in all its contexts.
	Blocks int `yaml:"blocks"`
	// Sessions bounds the conversations remembered.
	Sessions int `yaml:"sessions"`
	// Tenants bounds the tenants that have state of their own.
	Tenants int `yaml:"tenants"`
}

// Timeouts are all more than 0, but Drain, which may be 0. None ends an answer that is being sent.
type Timeouts struct {
	// ReadHeader is from the first byte of a connection or request to the end of its headers.
	ReadHeader time.Duration `yaml:"read_header"`
	// ReadBody is from the end of the headers to the end of the body; later is 408.
	ReadBody time.Duration `yaml:"read_body"`
	// Idle is how long a connection may wait for its next request.
	Idle time.Duration `yaml:"idle"`
	// UpstreamConnect is for connecting to the engine.
	UpstreamConnect time.Duration `yaml:"upstream_connect"`
	// UpstreamHeader is from the request to the status line of the engine's answer.
	UpstreamHeader time.Duration `yaml:"upstream_header"`
	// Drain is how long running answers may go on after the server was told to stop.
	Drain time.Duration `yaml:"drain"`
}

// Default is the configuration of a server that was told nothing. Where the reference has the option, its default is
// the reference's.
func Default() Config {
	return Config{
		Listen:       "0.0.0.0:8765",
		AdminAddr:    "127.0.0.1:9765",
		InferAPIURL:  "http://localhost:30000",
		LogLevel:     "info",
		LogFormat:    "text",
		ChunkModulus: 13,
		Limits: Limits{
			BodyBytes:   64 << 20,
			HeaderBytes: 64 << 10,
			Contexts:    4096,
			Blocks:      1_000_000,
			Sessions:    100_000,
			Tenants:     1024,
		},
		Timeouts: Timeouts{
			ReadHeader:      10 * time.Second,
			ReadBody:        time.Minute,
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
	return fmt.Sprintf("%+v", plain(c))
}

// LogValue is what slog shows: [Config.String], whatever the format.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// clone copies what Config points to.
func (c Config) clone() Config {
	c.Keys = slices.Clone(c.Keys)
	return c
}

// on tells whether TLS is wanted.
func (t TLS) on() bool { return t != (TLS{}) }
