package selfhosted

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/ragpilot/ragpilot/engines/openai"
)

// cacheConfig is the metric whose labels are vLLM's settings of its cache.
const cacheConfig = "vllm:cache_config_info"

// VLLM is the dialect of vLLM. First releases are those of the releases that were read; see docs/vllm.md for the gaps in
// between, where nothing is known.
var VLLM = &Dialect{
	name:          "vllm",
	ids:           openai.IDHeader | openai.IDRequest,
	salts:         []string{"cache_salt"},
	promptTokens:  "return_token_ids",
	streamsTokens: true,
	reset:         "/reset_prefix_cache",
	cachedFlag:    "--enable-prompt-tokens-details",
	members: []member{
		{"session_id", since{minor: 28}, session},
		{"return_token_ids", since{minor: 10, patch: 2, exact: true}, promptTokens},
		{"cache_salt", since{}, salt},
		{"priority", since{}, priority},
	},
	describe: func(ctx context.Context, e *Engine, f *Features) {
		var v struct {
			Version string `json:"version"`
		}
		if e.read(ctx, "/version", &v) == nil {
			f.Version = v.Version
		}
		_, err := e.EventSources(ctx)
		f.EventSources = answered("GET /kv_event_sources", err)
	},
	sources: vllmSources,
	metrics: func(m Samples) Metrics {
		usage, _ := m.Max("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
		return Metrics{
			Queries:         m.Count("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
			Hits:            m.Count("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
			ExternalQueries: m.Count("vllm:external_prefix_cache_queries_total"),
			ExternalHits:    m.Count("vllm:external_prefix_cache_hits_total"),
			Cached:          m.Count("vllm:prompt_tokens_cached_total"),
			Prompt:          m.Count("vllm:prompt_tokens_total"),
			Generated:       m.Count("vllm:generation_tokens_total"),
			Usage:           usage,
			Running:         int(m.Count("vllm:num_requests_running")),
			Waiting:         int(m.Count("vllm:num_requests_waiting")),
			PrefixCaching:   m.Label(cacheConfig, "enable_prefix_caching"),
			BlockSize:       m.IntLabel(cacheConfig, "block_size"),
			Blocks:          m.IntLabel(cacheConfig, "num_gpu_blocks"),
		}
	},
}

func vllmSources(ctx context.Context, e *Engine) ([]EventSource, error) {
	var ranks map[string]struct {
		Publisher string `json:"publisher"`
		Endpoint  string `json:"endpoint"`
		Replay    string `json:"replay_endpoint"`
		Topic     string `json:"topic"`
		Steps     int    `json:"buffer_steps"`
	}
	if err := e.read(ctx, "/kv_event_sources", &ranks); err != nil {
		return nil, err
	}
	var sources []EventSource
	for name, r := range ranks {
		rank, err := strconv.Atoi(name)
		if err != nil {
			return nil, fmt.Errorf("vllm: answer of /kv_event_sources has the rank %q", name)
		}
		if r.Publisher != "zmq" || r.Endpoint == "" {
			continue
		}
		at := Resolve(r.Endpoint, e.chats.Host())
		s := EventSource{
			Rank: rank, Endpoint: at.Address, Topic: r.Topic, BufferSteps: max(r.Steps, 0),
			MayDial: !at.Wildcard && !at.Local, Local: at.Local,
		}
		if r.Replay != "" {
			s.Replay = Resolve(r.Replay, e.chats.Host()).Address
		}
		sources = append(sources, s)
	}
	slices.SortFunc(sources, func(a, b EventSource) int { return cmp.Compare(a.Rank, b.Rank) })
	return sources, nil
}
