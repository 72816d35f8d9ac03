package kvevents

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents/internal/zmtp"
)

// AnyRank is the [Source.Rank] that every batch fits.
const AnyRank = -1

// Source is where events of one or more engines come from.
type Source struct {
	// Name is the replica's, for status and sinks.
	Name string
	// Endpoint is tcp://host:port or ipc://path: what the engine's publisher binds, or with Listen what we bind.
	Endpoint string
	// Listen: engines connect to us, because the endpoint in their configuration names a host. Each must publish
	// under a topic of its own: publishers are distinguished by it.
	Listen bool
	// Replay is the endpoint of the engine's replay socket, which it binds in any case; empty: none. With Listen it is that of one
	// engine: while others publish too, an answer is used only by the one whose topic it names, which those of vLLM before 0.26 and
	// SGLang before 0.5.23 do not. See [Config.ReplayEndpoint].
	Replay string
	// Topic is a prefix that topics must have; empty: any.
	Topic string
	// Rank is the data-parallel rank that must stand in batches that name one, or [AnyRank]. Of an engine without
	// data parallelism it is 0.
	Rank int
}

// Publisher is one engine, or one data-parallel rank of one.
type Publisher struct {
	// Source is the [Source.Name] that it was met by.
	Source string
	// Topic is empty for a source that we dial.
	Topic string
	Rank  int
}

// Defaults of [Config].
const (
	DefaultQueue         = 4096
	DefaultQueueBytes    = 64 << 20
	DefaultMaxMessage    = 16 << 20
	DefaultMaxPublishers = 256
	DefaultProbe         = 30 * time.Second
	DefaultTimeout       = 5 * time.Second
	DefaultBackoff       = 100 * time.Millisecond
	DefaultMaxBackoff    = 10 * time.Second
	DefaultResync        = 10 * time.Second
)

// Config holds the settings of a [Subscriber]. Sources and Sink are needed; zero values of the others stand for the
// defaults.
type Config struct {
	Sources []Source
	// Sink returns what takes a publisher's batches. It is called once for each publisher, when it is first met.
	Sink func(Publisher) Sink
	// Forgotten is called when a publisher that had connected to us and has gone was forgotten, after its sink was cleared: one that
	// has been gone for a minute, or one for which there is no room beside a new one (MaxPublishers). Sink is called again if it comes
	// back. Nil: nothing is called.
	Forgotten func(Publisher)
	// ReplayEndpoint returns the replay endpoint of a publisher that connected to us, "" for none. Nil: that of its
	// source.
	ReplayEndpoint func(Publisher) string
	// StartTime returns when the publisher's process started (process_start_time_seconds of its /metrics), in any
	// unit: it is only compared. Without it, and without replay, every reconnection clears the cache's picture.
	StartTime func(context.Context, Publisher) (float64, error)
	// Queue and QueueBytes bound what waits for a sink, for each publisher. What comes beyond is dropped, and asked
	// for again.
	Queue, QueueBytes int
	// MaxMessage bounds a message in bytes; a longer one ends the connection.
	MaxMessage int
	// MaxPublishers bounds the publishers that connected to us and are remembered. Beyond it one that
	// has gone is forgotten; if all are connected, no other is let in.
	MaxPublishers int
	// Probe is how long a stream may be silent before replay is asked whether it has missed anything; negative:
	// never.
	Probe time.Duration
	// Resync is the wait before an engine is asked a second time for all it has, because something is missing that it
	// may still have. It doubles each time.
	Resync time.Duration
	// Timeout bounds dialling, the handshake, StartTime, and the wait for each message of a replay.
	Timeout time.Duration
	// Backoff is the wait before the second attempt to connect; it doubles up to MaxBackoff. Each wait is shortened
	// by up to a half, at random.
	Backoff, MaxBackoff time.Duration
}

// errConfig is wrapped by errors of New.
var errConfig = errors.New("kvevents configuration")

func (c Config) withDefaults() (Config, error) {
	c.Queue, c.QueueBytes = positive(c.Queue, DefaultQueue), positive(c.QueueBytes, DefaultQueueBytes)
	c.MaxMessage, c.MaxPublishers = positive(c.MaxMessage, DefaultMaxMessage), positive(c.MaxPublishers, DefaultMaxPublishers)
	c.Timeout, c.Resync = positive(c.Timeout, DefaultTimeout), positive(c.Resync, DefaultResync)
	c.Backoff, c.MaxBackoff = positive(c.Backoff, DefaultBackoff), positive(c.MaxBackoff, DefaultMaxBackoff)
	if c.Probe == 0 {
		c.Probe = DefaultProbe
	}
	if c.Sink == nil {
		return c, fmt.Errorf("%w: Sink is missing", errConfig)
	}
	if len(c.Sources) == 0 {
		return c, fmt.Errorf("%w: Sources is empty", errConfig)
	}
	names := make(map[string]bool)
	for i, s := range c.Sources {
		if names[s.Name] {
			return c, fmt.Errorf("%w: Sources[%d].Name: %q is there twice", errConfig, i, s.Name)
		}
		names[s.Name] = true
		if _, err := zmtp.Parse(s.Endpoint, s.Listen); err != nil {
			return c, fmt.Errorf("%w: Sources[%d].Endpoint: %w", errConfig, i, err)
		}
		if s.Replay == "" {
			continue
		}
		if _, err := zmtp.Parse(s.Replay, false); err != nil {
			return c, fmt.Errorf("%w: Sources[%d].Replay: %w", errConfig, i, err)
		}
	}
	c.Sources = append([]Source(nil), c.Sources...)
	return c, nil
}

// positive returns v, or otherwise if v is not above 0.
func positive[T int | time.Duration](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}
