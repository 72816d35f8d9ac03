package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// eventFlags say where the engine publishes its cache events. They describe one engine; several stand in the file.
type eventFlags struct{ engine settings.Engine }

func (f *eventFlags) register(flags *pflag.FlagSet) {
	e := &f.engine
	flags.StringVar(&e.Events, "kv-events", "", "follow the engine's cache events at `ENDPOINT`: tcp://HOST:PORT, ipc://PATH, or auto to ask the engine; empty: off")
	flags.StringVar(&e.Replay, "kv-replay", "", "`ENDPOINT` where the engine can be asked for events that were missed")
	flags.StringVar(&e.Kind, "kv-engine", "vllm", "the engine that publishes them: `vllm|sglang`")
	flags.StringVar(&e.Topic, "kv-topic", "", "`PREFIX` of their topics")
	flags.BoolVar(&e.Listen, "kv-listen", false, "the engine connects to --kv-events, an address of this machine")
	flags.IntVar(&e.Ranks, "kv-ranks", 0, "`N` data-parallel ranks, on ports that count from those of --kv-events and --kv-replay")
}

// apply puts the flags that were given over a configuration's engine.
func (f *eventFlags) apply(flags *pflag.FlagSet, c *settings.Config) error {
	if flags.Changed("kv-events") && f.engine.Events == "" {
		c.Engines = nil
		return nil
	}
	e := settings.Engine{Kind: f.engine.Kind}
	if len(c.Engines) > 0 {
		e = c.Engines[0]
	}
	given := false
	for name, set := range map[string]func(){ // each sets a field of its own
		"kv-events": func() { e.Events = f.engine.Events },
		"kv-replay": func() { e.Replay = f.engine.Replay },
		"kv-engine": func() { e.Kind = f.engine.Kind },
		"kv-topic":  func() { e.Topic = f.engine.Topic },
		"kv-listen": func() { e.Listen = f.engine.Listen },
		"kv-ranks":  func() { e.Ranks = f.engine.Ranks },
	} {
		if flags.Changed(name) {
			given = true
			set()
		}
	}
	switch {
	case !given:
		return nil
	case len(c.Engines) > 1:
		return fmt.Errorf("%w: engines: --kv-* flags are for one engine, the file has %d", settings.ErrBadConfig, len(c.Engines))
	}
	c.Engines = []settings.Engine{e}
	return nil
}
