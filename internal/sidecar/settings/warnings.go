package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/memory"
)

// MinKey is the length in characters below which a key can be guessed.
const MinKey = 16

// warning is a text that is shown if something holds.
type warning struct {
	holds bool
	text  string
}

// Warnings returns what is valid and may surprise. A server logs it when it starts.
func (c Config) Warnings() (texts []string) {
	for _, list := range [][]warning{c.effectWarnings(), c.memoryWarnings(), c.accessWarnings(), c.engineWarnings()} {
		for _, w := range list {
			if w.holds {
				texts = append(texts, w.text)
			}
		}
	}
	return texts
}

// effectWarnings are about settings without effect.
func (c Config) effectWarnings() []warning {
	cloud, salted := c.CloudProvider != "", given(c.CacheSaltKey, c.CacheSaltKeyFile)
	tenants := c.TrustTenantHeader != "" || slices.ContainsFunc(c.Keys, func(k Key) bool { return k.Tenant != "" })
	return []warning{
		{c.Workers > 1, fmt.Sprintf("workers %d has no effect: one process serves all requests", c.Workers)},
		{c.MaxTokens > 0, fmt.Sprintf("max_tokens %d bounds nothing, it is only shown by /health: the engine says what it evicts", c.MaxTokens)},
		{!cloud && given(c.CloudAPIKey, c.CloudAPIKeyFile), "cloud_api_key has no effect without cloud_provider"},
		{!cloud && c.CloudBaseURL != "", "cloud_base_url has no effect without cloud_provider"},
		{cloud && !c.Memory.asks() && given(c.InferAPIKey, c.InferAPIKeyFile), "infer_api_key has no effect with cloud_provider"},
		{salted && cloud, "cache_salt_key has no effect with cloud_provider"},
		{salted && !cloud && !tenants, "cache_salt_key has no effect: neither keys nor trust_tenant_header name a tenant"},
		{cloud && c.Recompute > 0, "recompute has no effect with cloud_provider"},
		{!cloud && c.ExtendedCache, "extended_cache has no effect without cloud_provider"},
		{len(c.Prices) == 0 && c.Currency != "", "currency has no effect without prices"},
		{c.Trace.Endpoint == "" && given(c.Trace.Headers, c.Trace.HeadersFile), "trace.headers has no effect without trace.endpoint"},
		{
			cloud && c.InferAPIURL != Default().InferAPIURL && !c.Memory.asks(),
			"infer_api_url has no effect with cloud_provider: prompts go to " + c.CloudProvider,
		},
	}
}

func (c Config) memoryWarnings() []warning {
	m := c.Memory
	server := m.Embedding().Server()
	return []warning{
		{m.Model != "" && !m.asks(), "memory.model has no effect: memory.extract is verbatim"},
		{m.Dir == "" && m.Embedder != "" && m.Embedder != memory.AutoEmbedder, "memory.embedder has no effect without memory.dir"},
		{m.EmbedderModel != "" && !server, "memory.embedder_model has no effect: memory.embedder is not a URL"},
		{given(m.EmbedderKey, m.EmbedderKeyFile) && !server, "memory.embedder_key has no effect: memory.embedder is not a URL"},
	}
}

// accessWarnings are about what is valid and leaves a door open.
func (c Config) accessWarnings() []warning {
	w := []warning{{
		!c.closed() && !loopback(c.Listen),
		"listen " + c.Listen + " can be reached from other machines, and allow_anonymous lets everybody ask",
	}}
	for i, k := range c.Keys {
		n := len(k.Key)
		w = append(w, warning{
			n > 0 && n < MinKey, fmt.Sprintf("keys[%d].key has %d characters and can be guessed: use at least %d", i, n, MinKey),
		})
	}
	openAdmin := c.AdminAddr != "" && !loopback(c.AdminAddr)
	return append(w, []warning{
		{
			slices.Contains(c.AllowedOrigins, "*") && len(c.Keys) == 0,
			"allowed_origins * lets every web page that a user of this machine opens send requests",
		},
		{c.Pprof && openAdmin, "pprof: profiles on admin_addr " + c.AdminAddr + " slow the server down for everybody who can reach it"},
		{openAdmin, "admin_addr " + c.AdminAddr + " can be reached from other machines and asks for no key"},
		{
			c.ExtProcAddr != "" && !loopback(c.ExtProcAddr),
			"ext_proc_addr " + c.ExtProcAddr + " can be reached from other machines and asks for no key: only the gateway should reach it",
		},
		{
			c.TrustTenantHeader != "",
			"trust_tenant_header " + c.TrustTenantHeader + ": a client that is not behind a gateway can claim any tenant",
		},
	}...)
}

func (c Config) engineWarnings() []warning {
	w := append(make([]warning, 0, 1+2*len(c.Engines)),
		warning{len(c.Engines) > 0 && c.CloudProvider != "", "engines have no effect with cloud_provider"})
	for i, e := range c.Engines {
		address, tcp := strings.CutPrefix(e.Events, "tcp://")
		w = append(w, warning{
			tcp && e.Listen && !loopback(address),
			fmt.Sprintf("engines[%d].events %s can be reached from other machines and asks for no key: "+
				"any client can connect and report what is cached", i, e.Events),
		}, warning{
			e.Events != autoEvents && e.Replay == "",
			fmt.Sprintf("engines[%d] has no replay: after a lost message or connection its cache is not known until it is cleared", i),
		})
	}
	return w
}
