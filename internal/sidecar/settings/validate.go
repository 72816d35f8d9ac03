package settings

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/contextpilot/profile"
	"github.com/ragpilot/ragpilot/internal/sidecar/tenant"
	"github.com/ragpilot/ragpilot/internal/sidecar/tracing"
)

// ErrBadConfig is wrapped by every error about a configuration.
var ErrBadConfig = errors.New("bad configuration")

// problems collects what is wrong with a configuration: all of it, so that a file is mended in one go.
type problems []error

func (p *problems) add(field string, value any, want string) {
	if text, ok := value.(string); ok {
		value = strconv.Quote(text)
	}
	*p = append(*p, fmt.Errorf("%w: %s %v: %s", ErrBadConfig, field, value, want))
}

// Validate tells everything that is wrong with the configuration; each error names the field and its value, unless
// that is secret. Files are not looked at: see [Config.ReadSecrets] and [New].
func (c Config) Validate() error {
	var p problems
	p.checkAddress("listen", c.Listen)
	p.checkOpen(c)
	p.checkAccess(c)
	if c.AdminAddr != "" {
		p.checkAddress("admin_addr", c.AdminAddr)
	}
	if c.ExtProcAddr != "" {
		p.checkAddress("ext_proc_addr", c.ExtProcAddr)
	}
	p.checkBase("infer_api_url", c.InferAPIURL)
	p.checkEngineKeys(c)
	p.oneOf("log_level", c.LogLevel, "debug", "info", "warning", "error")
	p.oneOf("log_format", c.LogFormat, "text", "json")
	p.oneOf("cloud_provider", c.CloudProvider, "", "anthropic", "openai", "minimax")
	if c.CloudBaseURL != "" {
		p.checkBase("cloud_base_url", c.CloudBaseURL)
	}
	if !presentable(string(c.CloudAPIKey)) {
		p.add("cloud_api_key", c.CloudAPIKey, "has characters that no header can carry")
	}
	if c.Policy != "" {
		if _, err := contextpilot.NewPolicy(c.Policy); err != nil {
			p.add("policy", c.Policy, err.Error())
		}
	}
	if c.Profile != "" && !slices.Contains(profile.Names(), c.Profile) && !strings.HasSuffix(c.Profile, ".json") {
		p.add("profile", c.Profile, fmt.Sprintf("want one of %v, or a file whose name ends in .json", profile.Names()))
	}
	if !(c.HoldOut >= 0 && c.HoldOut <= 1) { // also not a number
		p.add("hold_out", c.HoldOut, "want a share from 0 to 1")
	}
	if !(c.Recompute >= 0 && c.Recompute <= 1) {
		p.add("recompute", c.Recompute, "want a part from 0 to 1")
	}
	if h := c.TrustTenantHeader; h != "" && !isToken(h) {
		p.add("trust_tenant_header", h, "is not a valid header name")
	} else if strings.EqualFold(h, "Authorization") || strings.EqualFold(h, "X-Api-Key") {
		p.add("trust_tenant_header", h, "carries keys")
	}
	p.checkEngines(c.Engines)
	p.checkKeys(c.Keys)
	p.checkPrices(c)
	p.checkNumbers(c)
	p.checkTLS(c.TLS)
	p.checkTrace(c.Trace)
	p.checkMemory(c.Memory)
	return errors.Join(p...)
}

func (p *problems) oneOf(field, value string, want ...string) {
	if !slices.Contains(want, value) {
		names := make([]string, 0, len(want))
		for _, name := range want {
			if name != "" {
				names = append(names, name)
			}
		}
		p.add(field, value, "want "+strings.Join(names, ", "))
	}
}

func (p *problems) checkAddress(field, value string) {
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		p.add(field, value, "want host:port")
		return
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		p.add(field, value, "want a port from 0 to 65535")
	}
}

func (p *problems) checkURL(field, value string) {
	u, err := url.Parse(value)
	switch {
	case err != nil:
		p.add(field, redacted(value), "is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		p.add(field, redacted(value), "want http or https")
	case u.Hostname() == "":
		p.add(field, redacted(value), "has no host")
	case !validPort(u.Port()):
		p.add(field, redacted(value), "want a port from 1 to 65535")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		p.add(field, redacted(value), "must have no query and no fragment")
	}
}

// checkEngineKeys checks what is sent to the engine in place of clients' keys, and what keeps tenants apart there.
func (p *problems) checkEngineKeys(c Config) {
	if !presentable(string(c.InferAPIKey)) {
		p.add("infer_api_key", c.InferAPIKey, "has characters that no header can carry")
	}
	if u, err := url.Parse(c.InferAPIURL); err == nil && u.User != nil && given(c.InferAPIKey, c.InferAPIKeyFile) {
		p.add("infer_api_url", redacted(c.InferAPIURL), "must have no user if infer_api_key is given")
	}
	if n := len(c.CacheSaltKey); n > 0 && n < minSaltKey {
		p.add("cache_salt_key", c.CacheSaltKey, fmt.Sprintf("want at least %d characters, since whoever guesses it knows every tenant's salt", minSaltKey))
	}
}

const minSaltKey = 16

func (p *problems) checkTrace(t Trace) {
	if !(t.Sample >= 0 && t.Sample <= 1) { // also not a number
		p.add("trace.sample", t.Sample, "want a share from 0 to 1")
	}
	if t.Endpoint == "" {
		return // the rest may stand in the environment, for other programs
	}
	p.checkURL("trace.endpoint", t.Endpoint)
	if u, err := url.Parse(t.Endpoint); err == nil && u.User != nil {
		p.add("trace.endpoint", redacted(t.Endpoint), "must have no user: want trace.headers for keys")
	}
	if _, err := tracing.ParseHeaders(t.Headers.Reveal()); err != nil {
		p.add("trace.headers", t.Headers, err.Error())
	}
}

// checkKeys never shows a key, only its place.
func (p *problems) checkKeys(keys []Key) {
	first := map[Secret]int{}
	for i, k := range keys {
		field := fmt.Sprintf("keys[%d]", i)
		if k.Tenant != "" && !tenant.Valid(k.Tenant) {
			p.add(field+".tenant", k.Tenant, tenant.Want)
		}
		j, twice := first[k.Key]
		switch {
		case k.File != "" && k.Key != "":
			p.add(field+".file", k.File, "the key itself is given too")
		case k.File != "": // not read yet
		case k.Key == "":
			p.add(field+".key", `""`, "want a key or a file")
		case !presentable(string(k.Key)):
			p.add(field+".key", k.Key, "has characters that no header can carry")
		case twice:
			p.add(field+".key", k.Key, fmt.Sprintf("is the key of keys[%d] too", j))
		default:
			first[k.Key] = i
		}
	}
}

// leastMemory is what the tables that have a fixed share need, and half as much for the others.
const leastMemory = 16 << 20

func (p *problems) checkNumbers(c Config) {
	for _, n := range []struct {
		field      string
		value, min int64
	}{
		{"chunk_modulus", int64(c.ChunkModulus), 1},
		{"workers", int64(c.Workers), 0},
		{"max_tokens", int64(c.MaxTokens), 0},
		{"limits.body_bytes", c.Limits.BodyBytes, 1},
		{"limits.in_flight_bytes", c.Limits.InFlightBytes, 1},
		{"limits.memory_bytes", c.Limits.MemoryBytes, leastMemory},
		{"limits.header_bytes", int64(c.Limits.HeaderBytes), 1},
		{"limits.contexts", int64(c.Limits.Contexts), 1},
		{"limits.blocks", int64(c.Limits.Blocks), 1},
		{"limits.sessions", int64(c.Limits.Sessions), 1},
		{"limits.tenants", int64(c.Limits.Tenants), 1},
		{"limits.connections", int64(c.Limits.Connections), 1},
		{"limits.concurrent_requests", int64(c.Limits.ConcurrentRequests), 0},
	} {
		if n.value < n.min {
			p.add(n.field, n.value, fmt.Sprintf("want at least %d", n.min))
		}
	}
	if !(c.Limits.RequestsPerSecond >= 0 && c.Limits.RequestsPerSecond <= 1e9) { // also not a number
		p.add("limits.requests_per_second", c.Limits.RequestsPerSecond, "want 0 to 1e9")
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"read_header", c.Timeouts.ReadHeader},
		{"read_body", c.Timeouts.ReadBody},
		{"write", c.Timeouts.Write},
		{"idle", c.Timeouts.Idle},
		{"upstream_connect", c.Timeouts.UpstreamConnect},
		{"upstream_header", c.Timeouts.UpstreamHeader},
	} {
		if d.value <= 0 {
			p.add("timeouts."+d.field, d.value, "want more than 0s")
		}
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"timeouts.in_flight", c.Timeouts.InFlight},
		{"timeouts.lame_duck", c.Timeouts.LameDuck},
		{"timeouts.drain", c.Timeouts.Drain},
		{"plan.window", c.Plan.Window},
	} {
		if d.value < 0 {
			p.add(d.field, d.value, "want at least 0s")
		}
	}
}

func (p *problems) checkTLS(t TLS) {
	if !t.On() {
		return
	}
	if t.Cert == "" {
		p.add("tls.cert", "", "want a file, since other fields of tls are given")
	}
	if t.Key == "" {
		p.add("tls.key", "", "want a file, since other fields of tls are given")
	}
}

// Warnings tells what is valid and may surprise. A server logs it when it starts.
func (c Config) Warnings() []string {
	var w []string
	if c.Workers > 1 {
		w = append(w, fmt.Sprintf("workers %d has no effect: one process serves all requests", c.Workers))
	}
	if c.MaxTokens > 0 {
		w = append(w, fmt.Sprintf("max_tokens %d bounds nothing, it is only shown by /health: the engine says what it evicts", c.MaxTokens))
	}
	if c.CloudProvider == "" && given(c.CloudAPIKey, c.CloudAPIKeyFile) {
		w = append(w, "cloud_api_key has no effect without cloud_provider")
	}
	if c.CloudProvider == "" && c.CloudBaseURL != "" {
		w = append(w, "cloud_base_url has no effect without cloud_provider")
	}
	if c.CloudProvider != "" && !c.Memory.asks() && given(c.InferAPIKey, c.InferAPIKeyFile) {
		w = append(w, "infer_api_key has no effect with cloud_provider")
	}
	w = append(w, c.Memory.warnings()...)
	if salted := given(c.CacheSaltKey, c.CacheSaltKeyFile); salted && c.CloudProvider != "" {
		w = append(w, "cache_salt_key has no effect with cloud_provider")
	} else if salted && c.TrustTenantHeader == "" && !slices.ContainsFunc(c.Keys, func(k Key) bool { return k.Tenant != "" }) {
		w = append(w, "cache_salt_key has no effect: neither keys nor trust_tenant_header name a tenant")
	}
	if c.CloudProvider != "" && c.Recompute > 0 {
		w = append(w, "recompute has no effect with cloud_provider")
	}
	if c.CloudProvider == "" && c.ExtendedCache {
		w = append(w, "extended_cache has no effect without cloud_provider")
	}
	if len(c.Prices) == 0 && c.Currency != "" {
		w = append(w, "currency has no effect without prices")
	}
	w = append(w, c.accessWarnings()...)
	if c.AdminAddr != "" && !loopback(c.AdminAddr) {
		w = append(w, "admin_addr "+c.AdminAddr+" can be reached from other machines and asks for no key")
	}
	if c.ExtProcAddr != "" && !loopback(c.ExtProcAddr) {
		w = append(w, "ext_proc_addr "+c.ExtProcAddr+" can be reached from other machines and asks for no key: only the gateway should reach it")
	}
	if c.Trace.Endpoint == "" && given(c.Trace.Headers, c.Trace.HeadersFile) {
		w = append(w, "trace.headers has no effect without trace.endpoint")
	}
	if c.TrustTenantHeader != "" {
		w = append(w, "trust_tenant_header "+c.TrustTenantHeader+": a client that is not behind a gateway can claim any tenant")
	}
	return append(w, c.engineWarnings()...)
}

// given reports whether a secret is set, itself or by the name of its file.
func given(s Secret, file string) bool { return s != "" || file != "" }

// presentable reports whether all characters are printable ASCII other than the space.
func presentable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// isToken reports whether text may name a header (RFC 9110, 5.6.2).
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", r)
	})
}
