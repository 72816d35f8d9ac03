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
	"github.com/ragpilot/ragpilot/stabilise"
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

// want adds what is wanted of a field, unless it holds.
func (p *problems) want(holds bool, field string, value any, want string) {
	if !holds {
		p.add(field, value, want)
	}
}

// key adds that a key cannot be sent in a header.
func (p *problems) key(field string, key Secret) {
	p.want(presentable(string(key)), field, key, "has characters that no header can carry")
}

// share adds that a value is no share.
func (p *problems) share(field string, value float64) {
	p.want(value >= 0 && value <= 1, field, value, "want a share from 0 to 1") // also not a number
}

// Validate returns everything that is wrong with the configuration; each error names the field and its value, unless that is
// secret. Files are not looked at: see [Config.ReadSecrets].
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
	p.oneOf("hold.until", c.Hold.Until, HoldAuto, HoldOff, HoldFirstToken, HoldAnswer)
	p.checkStabilise(&c.Stabilise)
	p.oneOf("cloud_provider", c.CloudProvider, "", "anthropic", "openai", "minimax")
	if c.CloudBaseURL != "" {
		p.checkBase("cloud_base_url", c.CloudBaseURL)
	}
	p.key("cloud_api_key", c.CloudAPIKey)
	if c.Policy != "" {
		if _, err := contextpilot.NewPolicy(c.Policy); err != nil {
			p.add("policy", c.Policy, err.Error())
		}
	}
	if c.Profile != "" && !slices.Contains(profile.Names(), c.Profile) && !strings.HasSuffix(c.Profile, ".json") {
		p.add("profile", c.Profile, fmt.Sprintf("want one of %v, or a file whose name ends in .json", profile.Names()))
	}
	p.share("hold_out", c.HoldOut)
	p.want(c.Recompute >= 0 && c.Recompute <= 1, "recompute", c.Recompute, "want a part from 0 to 1")
	p.checkDiagnosis(c)
	h := c.TrustTenantHeader
	p.want(h == "" || isToken(h), "trust_tenant_header", h, "is not a valid header name")
	p.want(!strings.EqualFold(h, "Authorization") && !strings.EqualFold(h, "X-Api-Key"), "trust_tenant_header", h, "carries keys")
	p.checkEngines(c.Engines)
	p.checkKeys(c.Keys)
	p.checkPrices(c)
	p.checkNumbers(c)
	p.checkTLS(c.TLS)
	p.checkTrace(c.Trace)
	p.checkMemory(c.Memory)
	return errors.Join(p...)
}

// checkDiagnosis checks what is said about comparing prompts.
func (p *problems) checkDiagnosis(c Config) {
	p.want(c.DiagnosisBytes == 0 || c.DiagnosisBytes >= leastDiagnosis, "diagnosis_bytes", c.DiagnosisBytes,
		fmt.Sprintf("want at least %d, or 0 for none", leastDiagnosis))
	p.want(!c.MissHeader || c.DiagnosisBytes > 0, "miss_header", c.MissHeader, "needs diagnosis_bytes above 0")
	p.want(c.ReplicaHeader == "" || isToken(c.ReplicaHeader), "replica_header", c.ReplicaHeader, "is not a valid header name")
}

// leastDiagnosis has room for the prompts of a few conversations.
const leastDiagnosis = 1 << 20

// checkStabilise checks each pattern and marker, also where the rule is off.
func (p *problems) checkStabilise(s *Stabilise) {
	p.oneOf("stabilise.place", s.Place, stabilise.PlaceNames...)
	all := func(field string, list []string, check func(string) error) {
		for i, text := range list {
			if err := check(text); err != nil {
				p.add(fmt.Sprintf("%s[%d]", field, i), text, err.Error())
			}
		}
	}
	all("stabilise.patterns", s.Patterns, stabilise.CheckPattern)
	all("stabilise.markers", s.Markers, stabilise.CheckMarker)
}

func (p *problems) oneOf(field, value string, want ...string) {
	names := strings.TrimPrefix(strings.Join(want, ", "), ", ") // the empty one, if allowed, comes first
	p.want(slices.Contains(want, value), field, value, "want "+names)
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
	p.key("infer_api_key", c.InferAPIKey)
	if u, err := url.Parse(c.InferAPIURL); err == nil && u.User != nil && given(c.InferAPIKey, c.InferAPIKeyFile) {
		p.add("infer_api_url", redacted(c.InferAPIURL), "must have no user if infer_api_key is given")
	}
	n := len(c.CacheSaltKey)
	p.want(n == 0 || n >= minSaltKey, "cache_salt_key", c.CacheSaltKey,
		fmt.Sprintf("want at least %d characters, because a client that guesses it knows every tenant's salt", minSaltKey))
}

const minSaltKey = 16

func (p *problems) checkTrace(t Trace) {
	p.share("trace.sample", t.Sample)
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
		{"hold.tokens", int64(c.Hold.Tokens), 1},
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
		p.want(n.value >= n.min, n.field, n.value, fmt.Sprintf("want at least %d", n.min))
	}
	rate := c.Limits.RequestsPerSecond
	p.want(rate >= 0 && rate <= 1e9, "limits.requests_per_second", rate, "want 0 to 1e9") // also not a number
	t := c.Timeouts
	for _, d := range []struct {
		field string
		value time.Duration
		zero  bool // may be 0
	}{
		{"timeouts.read_header", t.ReadHeader, false},
		{"timeouts.read_body", t.ReadBody, false},
		{"timeouts.write", t.Write, false},
		{"timeouts.idle", t.Idle, false},
		{"timeouts.upstream_connect", t.UpstreamConnect, false},
		{"timeouts.upstream_header", t.UpstreamHeader, false},
		{"timeouts.in_flight", t.InFlight, true},
		{"timeouts.lame_duck", t.LameDuck, true},
		{"timeouts.drain", t.Drain, true},
		{"plan.window", c.Plan.Window, true},
		{"hold.longest", c.Hold.Longest, false},
	} {
		want := "want more than 0s"
		if d.zero {
			want = "want at least 0s"
		}
		p.want(d.value > 0 || d.zero && d.value == 0, d.field, d.value, want)
	}
}

func (p *problems) checkTLS(t TLS) {
	const want = "want a file, since other fields of tls are given"
	p.want(!t.On() || t.Cert != "", "tls.cert", "", want)
	p.want(!t.On() || t.Key != "", "tls.key", "", want)
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
