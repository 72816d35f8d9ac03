package selfhosted

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/ragpilot/ragpilot/engines/openai"
)

// SGLang is the dialect of SGLang. First releases are those of the releases that were read.
var SGLang = &Dialect{
	name:         "sglang",
	ids:          openai.IDRid,
	salts:        []string{"cache_salt", "extra_key"},
	promptTokens: "return_prompt_token_ids",
	reset:        "/flush_cache",
	busyStatus:   http.StatusBadRequest,
	cachedFlag:   "--enable-cache-report",
	members: []member{
		{"session_id", since{minor: 5, patch: 20}, session},
		{"cache_salt", since{minor: 5, patch: 20}, salt},
		{"extra_key", since{}, extraKey},
		{"return_prompt_token_ids", since{minor: 5, patch: 23}, promptTokens},
	},
	describe: sglangSettings,
	sources:  sglangSources,
	metrics: func(m Samples) Metrics {
		rate, _ := m.Max("sglang:cache_hit_rate")
		usage, _ := m.Max("sglang:token_usage")
		prompt, cached := m.Count("sglang:prompt_tokens_total"), m.Count("sglang:cached_tokens_total")
		return Metrics{
			Queries: prompt, Hits: cached, Prompt: prompt, Cached: cached,
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
		}
	},
}

// info is the part of the server's description (GET /server_info) that is used here. It holds the settings that the
// server was started with.
type info struct {
	Version     string `json:"version"`
	PageSize    int    `json:"page_size"`
	MaxTokens   int    `json:"max_total_num_tokens"`
	CacheReport *bool  `json:"enable_cache_report"`
	Priority    *bool  `json:"enable_priority_scheduling"`
	NoCache     *bool  `json:"disable_radix_cache"`
	// Events is where cache events are published: rank n uses the n-th port from each base on.
	Events *struct {
		Publisher  string `json:"publisher"`
		Host       string `json:"endpoint_host"`
		Port       int    `json:"endpoint_port_base"`
		ReplayPort int    `json:"replay_endpoint_port_base"`
		Topic      string `json:"topic"`
		BlockSize  int    `json:"block_size"`
		Ranks      int    `json:"dp_size"`
	} `json:"kv_events"`
}

// readInfo asks for the server's description, in older releases under its older name, and returns where it was found.
func readInfo(ctx context.Context, e *Engine) (i info, path string, err error) {
	path = "/server_info"
	err = e.read(ctx, path, &i)
	if errors.Is(err, ErrNotOffered) {
		path = "/get_server_info"
		i = info{}
		err = e.read(ctx, path, &i)
	}
	return i, path, err
}

func sglangSettings(ctx context.Context, e *Engine, f *Features) {
	i, path, err := readInfo(ctx, e)
	if err != nil {
		f.EventSources = answered("GET "+path, err)
		return
	}
	f.Version, f.BlockSize, f.MaxTokens = i.Version, max(i.PageSize, 0), max(i.MaxTokens, 0)
	f.CachedTokens = setting(i.CacheReport, path+" has enable_cache_report")
	f.Priority = setting(i.Priority, path+" has enable_priority_scheduling")
	switch off := i.NoCache; {
	case off == nil:
	case *off:
		f.PrefixCache = No(path + " has disable_radix_cache")
	default:
		f.PrefixCache = Yes(path + " has disable_radix_cache: false")
	}
	if i.Events == nil {
		f.EventSources = Unknown(path + " has no kv_events: none are published, or the release does not say")
		return
	}
	f.EventSources = Yes(path + " has kv_events")
	f.BlockSize = max(i.Events.BlockSize, f.BlockSize)
}

// setting is the support for what a server was started with or without.
func setting(on *bool, what string) Support {
	switch {
	case on == nil:
		return Support{}
	case *on:
		return Yes(what)
	}
	return No(what + ": false")
}

// maxRanks bounds what a server's claim of its number of ranks costs.
const maxRanks = 4096

func sglangSources(ctx context.Context, e *Engine) ([]EventSource, error) {
	i, path, err := readInfo(ctx, e)
	if err != nil {
		return nil, err
	}
	p := i.Events
	if p == nil || p.Publisher != "zmq" || p.Port <= 0 {
		return nil, nil
	}
	if p.Ranks > maxRanks {
		return nil, fmt.Errorf("sglang: answer of %s has %d ranks, more than %d", path, p.Ranks, maxRanks)
	}
	sources := make([]EventSource, 0, max(p.Ranks, 1))
	for rank := range max(p.Ranks, 1) {
		at := AtPort(p.Host, p.Port+rank, e.chats.Host())
		s := EventSource{Rank: rank, Endpoint: at.Address, Topic: p.Topic, BlockSize: max(p.BlockSize, 0), MayDial: !at.Wildcard}
		if p.ReplayPort > 0 {
			s.Replay = AtPort(p.Host, p.ReplayPort+rank, e.chats.Host()).Address
		}
		sources = append(sources, s)
	}
	return sources, nil
}
