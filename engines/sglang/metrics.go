package sglang

import (
	"context"
	"time"
)

// Metrics is a reading of the server's metrics (it must be started with --enable-metrics), over all of its ranks. Counters
// are in tokens, since its start; what it does not report is 0.
type Metrics struct {
	Prompt    int64 // tokens of prompts
	Cached    int64 // of these, taken from the cache, whatever its tier
	Generated int64 // tokens of answers
	Evicted   int64 // tokens that the cache gave up
	LoadedUp  int64 // tokens that came back from a lower tier

	HitRate float64 // the server's own, of its last batch: 0 to 1
	Usage   float64 // share of the cache that requests use now, of the fullest rank
	// Available, Evictable and Used are the tokens of the cache that are free, cached and not in use, and in use.
	Available, Evictable, Used int64
	// HostUsed and HostTotal are the tokens of the tier in the host's memory.
	HostUsed, HostTotal int64
	Running, Waiting    int // requests

	Started time.Time // of the process; zero if the server does not report it
}

// HitRatio is the share of all prompt tokens that the cache had, 0 before the first prompt.
func (m Metrics) HitRatio() float64 {
	if m.Prompt == 0 {
		return 0
	}
	return float64(m.Cached) / float64(m.Prompt)
}

// Metrics reads the server's metrics (GET /metrics).
func (e *Engine) Metrics(ctx context.Context) (Metrics, error) {
	m, err := e.client.Metrics(ctx)
	if err != nil {
		return Metrics{}, err
	}
	rate, _ := m.Max("sglang:cache_hit_rate")
	usage, _ := m.Max("sglang:token_usage")
	return Metrics{
		Prompt:    m.Count("sglang:prompt_tokens_total"),
		Cached:    m.Count("sglang:cached_tokens_total"),
		Generated: m.Count("sglang:generation_tokens_total"),
		Evicted:   m.Count("sglang:evicted_tokens_total"),
		LoadedUp:  m.Count("sglang:load_back_tokens_total"),
		HitRate:   rate,
		Usage:     usage,
		Available: m.Count("sglang:kv_available_tokens"),
		Evictable: m.Count("sglang:kv_evictable_tokens"),
		Used:      m.Count("sglang:kv_used_tokens"),
		HostUsed:  m.Count("sglang:hicache_host_used_tokens"),
		HostTotal: m.Count("sglang:hicache_host_total_tokens"),
		Running:   int(m.Count("sglang:num_running_reqs")),
		Waiting:   int(m.Count("sglang:num_queue_reqs")),
		Started:   m.Started(),
	}, nil
}
