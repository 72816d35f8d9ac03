package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/replay"
)

// traceFlags are the flags that plan and replay share.
type traceFlags struct {
	trace, blocks        string
	dedup, history, hint string
	capacity             string
	k                    int
}

func (f *traceFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.trace, "trace", "", "trace `FILE` (JSON lines, may end in .gz, - for standard input)")
	flags.StringVar(&f.blocks, "blocks", "", "blocks `FILE` (JSON lines, may end in .gz)")
	flags.StringVar(&f.dedup, "dedup", "on", "replace blocks shown earlier in the session by references: `on|off`")
	flags.StringVar(&f.history, "history", "full", "what each turn resends: `full|none`")
	flags.StringVar(&f.hint, "hint", "auto", "tell the retriever's order when it is not the order sent: `auto|off`")
	flags.IntVar(&f.k, "k", 0, "use the first `N` documents of each request (0: all)")
}

// settings checks the flags' values.
func (f *traceFlags) settings(policy string) (replay.Settings, error) {
	s := replay.Settings{Policy: policy, K: f.k}
	if f.trace == "" {
		return s, fmt.Errorf("--trace: which trace?")
	}
	if f.blocks == "" {
		return s, fmt.Errorf("--blocks: which blocks?")
	}
	if f.trace == "-" && f.blocks == "-" {
		return s, fmt.Errorf("--trace and --blocks: only one can be standard input")
	}
	if policy == "" {
		return s, fmt.Errorf("--policy %q: want one of %v", policy, contextpilot.PolicyNames())
	}
	if f.k < 0 {
		return s, fmt.Errorf("--k %d: must not be negative", f.k)
	}
	var err error
	if s.Dedup, err = oneOf("--dedup", f.dedup, "on", "off"); err != nil {
		return s, err
	}
	if s.History, err = oneOf("--history", f.history, "full", "none"); err != nil {
		return s, err
	}
	s.Hint, err = oneOf("--hint", f.hint, "auto", "off")
	return s, err
}

// oneOf tells whether the value is yes; anything but yes and no is an error.
func oneOf(flag, value, yes, no string) (bool, error) {
	switch value {
	case yes:
		return true, nil
	case no:
		return false, nil
	}
	return false, fmt.Errorf("%s %q: want %s or %s", flag, value, yes, no)
}
