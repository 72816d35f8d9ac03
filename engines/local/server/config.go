package server

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents/publish"
)

// Defaults of [Config].
const (
	DefaultMaxBody     = 16 << 20
	DefaultMaxRequests = 1024
	DefaultIOTimeout   = time.Minute
)

// Config holds the settings of a Server; zero values stand for the defaults.
type Config struct {
	// Version is what /version says.
	Version string
	// Events publishes what the engine's cache stores and gives up; /kv_event_sources says where. Nil: they are not published.
	Events *publish.Publisher
	// MaxBody bounds the body of a request in bytes.
	MaxBody int64
	// MaxRequests bounds the completions that run or wait, and the tokenizer's requests with them; the next one is refused
	// (429).
	MaxRequests int
	// IOTimeout bounds the wait for a client to send its request, and each wait for it to take a piece of its answer.
	IOTimeout time.Duration
	// Logger receives what went wrong in the engine; nil: nothing is logged.
	Logger *slog.Logger
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	c.Version = cmp.Or(c.Version, "unknown")
	if c.MaxBody <= 0 {
		c.MaxBody = DefaultMaxBody
	}
	if c.MaxRequests <= 0 {
		c.MaxRequests = DefaultMaxRequests
	}
	if c.IOTimeout <= 0 {
		c.IOTimeout = DefaultIOTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}
