package cachewatch

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// Options configure a [Follower]. Engines and BaseURL are required.
type Options struct {
	// Engines tells which engines are followed now; each has a name. When it changes, those that serve the same models begin anew
	// if something about them has changed: prompts that were followed are not any more, and Cleared is called. Others go on.
	Engines func() []settings.Engine
	// BaseURL is that of engines without a URL.
	BaseURL string
	// Lost, Shrunk and Indexed are told what prompts have lost, in order: parts of which nothing is left, those of which
	// the first tokens are, by the pilot's count, and IDs that the index endpoints know. Cleared is told that the engines
	// which serve some models (none: all) hold nothing any more. Nil: nobody. They are called concurrently, but about
	// engines that serve the same models one at a time.
	Lost    func(scope contextpilot.Scope, id string)
	Shrunk  func(scope contextpilot.Scope, id string, tokens int)
	Indexed func(tenant, id string)
	Cleared func(models []string)

	Log      *slog.Logger          // nil: slog.Default
	Registry prometheus.Registerer // nil: none
	// Transport carries questions to engines; nil: one of its own.
	Transport http.RoundTripper
	// Every is how often the state of connections is looked at, for logs; 0: a second.
	Every time.Duration
	// MaxBytes bounds the bodies that are kept to ask an engine's tokenizer, in bytes of all together, and may change; nil: 128 MiB.
	// One that is alone always has room.
	MaxBytes func() int64
	// MaxPrompts bounds the prompts that are followed; 0: 100,000. Those that came first are forgotten.
	MaxPrompts int
}

func (o Options) withDefaults() Options {
	if o.Lost == nil {
		o.Lost = func(contextpilot.Scope, string) {}
	}
	if o.Shrunk == nil {
		o.Shrunk = func(contextpilot.Scope, string, int) {}
	}
	if o.Indexed == nil {
		o.Indexed = func(string, string) {}
	}
	if o.Cleared == nil {
		o.Cleared = func([]string) {}
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Every <= 0 {
		o.Every = time.Second
	}
	if o.MaxBytes == nil {
		o.MaxBytes = func() int64 { return 128 << 20 }
	}
	if o.MaxPrompts <= 0 {
		o.MaxPrompts = 100_000
	}
	return o
}
