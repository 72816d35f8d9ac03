package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/ragpilot/ragpilot/engines/openai"
)

// engineFlags are the flags that name a real engine in place of the simulator.
type engineFlags struct {
	engine, model, apiKey, requestID string
	maxTokens                        int
}

func (f *engineFlags) register(flags *pflag.FlagSet, maxTokens int) {
	flags.StringVar(&f.engine, "engine", "sim", "`sim|URL`: the simulator, or the base URL of an OpenAI-compatible engine")
	flags.StringVar(&f.model, "model", "", "`MODEL` to ask a real engine for")
	flags.StringVar(&f.apiKey, "api-key", "", "`KEY` for a real engine")
	flags.StringVar(&f.requestID, "request-id", "all", "how a real engine is told the request's ID: `all|header|none`; hosted services may refuse unknown members of the body and want header")
	flags.IntVar(&f.maxTokens, "max-tokens", maxTokens, "length of a real engine's answers in `TOKENS`")
}

// simulated reports whether no real engine was named.
func (f *engineFlags) simulated() bool { return f.engine == "sim" }

func (f *engineFlags) open() (*openai.Engine, error) {
	if f.maxTokens < 1 {
		return nil, fmt.Errorf("--max-tokens %d: want at least 1", f.maxTokens)
	}
	config := openai.Config{BaseURL: f.engine, Model: f.model, APIKey: f.apiKey}
	switch f.requestID {
	case "all":
	case "header":
		config.IDs = openai.IDHeader
	case "none":
		config.IDs = openai.IDNowhere
	default:
		return nil, fmt.Errorf("--request-id %q: want all, header or none", f.requestID)
	}
	engine, err := openai.New(config)
	if err != nil {
		return nil, fmt.Errorf("--engine: %w", err)
	}
	return engine, nil
}
