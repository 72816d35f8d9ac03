package vllm

import (
	"context"
	"time"
)

// Metrics is a reading of the server's metrics, over all of its ranks. Counters are in tokens, since its start; what it
// does not report is 0.
type Metrics struct {
	Queries int64 // prompt tokens looked up in the prefix cache
	Hits    int64 // of these, found there
	// ExternalQueries and ExternalHits are the same of a cache outside the engine, which is asked for the rest.
	ExternalQueries, ExternalHits int64
	Cached                        int64 // prompt tokens taken from any cache
	Prompt, Generated             int64 // tokens of prompts and of answers

	// Usage is the share of cache blocks that requests use now, of the fullest rank. It does not count blocks that are
	// cached and not in use: 0 when the server is idle.
	Usage            float64
	Running, Waiting int // requests

	// PrefixCaching is what the server says of its setting, "True" or "False"; "": nothing.
	PrefixCaching string
	BlockSize     int       // tokens of a cache block
	Blocks        int       // cache blocks of a rank
	Started       time.Time // of the process: another one means that the server was restarted and its cache is empty
}

// HitRatio is the share of looked up tokens that the cache had, 0 if none was looked up.
func (m Metrics) HitRatio() float64 {
	if m.Queries == 0 {
		return 0
	}
	return float64(m.Hits) / float64(m.Queries)
}

// Metrics reads the server's metrics (GET /metrics). Names that older releases had count as well.
func (e *Engine) Metrics(ctx context.Context) (Metrics, error) {
	m, err := e.client.Metrics(ctx)
	if err != nil {
		return Metrics{}, err
	}
	const config = "vllm:cache_config_info"
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
		PrefixCaching:   m.Label(config, "enable_prefix_caching"),
		BlockSize:       m.IntLabel(config, "block_size"),
		Blocks:          m.IntLabel(config, "num_gpu_blocks"),
		Started:         m.Started(),
	}, nil
}
