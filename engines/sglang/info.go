package sglang

import (
	"context"
	"errors"

	"github.com/ragpilot/ragpilot/engines/internal/selfhosted"
)

// info is the part of the server's description (GET /server_info) that is used here. It holds the settings that the
// server was started with.
type info struct {
	Version     string          `json:"version"`
	PageSize    int             `json:"page_size"`
	MaxTokens   int             `json:"max_total_num_tokens"`
	CacheReport *bool           `json:"enable_cache_report"`
	Priority    *bool           `json:"enable_priority_scheduling"`
	NoCache     *bool           `json:"disable_radix_cache"`
	Events      *eventPublisher `json:"kv_events"`
}

// eventPublisher describes where cache events are published: rank n uses the n-th port from each base on.
type eventPublisher struct {
	Publisher  string `json:"publisher"`
	Host       string `json:"endpoint_host"`
	Port       int    `json:"endpoint_port_base"`
	ReplayPort int    `json:"replay_endpoint_port_base"`
	Topic      string `json:"topic"`
	BlockSize  int    `json:"block_size"`
	Ranks      int    `json:"dp_size"`
}

// info asks for the server's description, in older releases under its older name, and tells where it was found.
func (e *Engine) info(ctx context.Context) (i info, path string, err error) {
	path = "/server_info"
	err = e.client.Read(ctx, path, &i)
	if errors.Is(err, selfhosted.ErrNotOffered) {
		path = "/get_server_info"
		i = info{}
		err = e.client.Read(ctx, path, &i)
	}
	return i, path, err
}
