package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/contextpilot/profile"
	"github.com/ragpilot/ragpilot/internal/lab/replay"
)

// traceFlags are the flags that plan and replay share.
type traceFlags struct {
	trace, blocks        string
	dedup, history, hint string
	capacity             string
	k                    int
	alwaysHint           bool
	limits               contextpilot.Limits
	group, profile       string
	flags                *pflag.FlagSet // on which these are registered
}

func (f *traceFlags) register(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringVar(&f.trace, "trace", "", "trace `FILE` (JSON lines, may end in .gz, - for standard input)")
	flags.StringVar(&f.blocks, "blocks", "", "blocks `FILE` (JSON lines, may end in .gz)")
	flags.StringVar(&f.dedup, "dedup", "on", "replace blocks shown earlier in the session by references: `on|off`")
	flags.StringVar(&f.history, "history", "full", "what each turn resends: `full|none`")
	flags.StringVar(&f.hint, "hint", "auto",
		"tell the model the retriever's order, where that costs less than the order sent saves: `auto|full|top-N|displaced-only|none`")
	flags.BoolVar(&f.alwaysHint, "hint-always", false, "tell it whether it pays or not")
	flags.IntVar(&f.limits.MaxDisplacement, "max-displacement", 0, "no block stands more than `N` places from its rank (0: no limit)")
	flags.IntVar(&f.limits.Pin, "pin", 0, "the first `N` documents stay in front")
	flags.IntVar(&f.limits.KeepTopAtEnd, "keep-top-at-end", 0, "the first `N` documents go to the end, the best one last")
	flags.StringVar(&f.group, "group", "",
		"documents whose IDs are equal up to the last `SEPARATOR`, with a number behind it, stay in the order of these numbers")
	flags.StringVar(&f.profile, "profile", "default",
		fmt.Sprintf("policy, limits and notes by `NAME` or file: %v; flags that are given win", profile.Names()))
	flags.IntVar(&f.k, "k", 0, "use the first `N` documents of each request (0: all)")
}

// settings checks the flags' values.
func (f *traceFlags) settings(policy string) (replay.Settings, error) {
	s := replay.Settings{Policy: policy, K: f.k}
	if err := checkTraceFiles(f.trace, f.blocks); err != nil {
		return s, err
	}
	if policy == "" {
		return s, fmt.Errorf("--policy %q: want one of %v", policy, contextpilot.PolicyNames())
	}
	err := checkLimits(limited{"k", f.k, 0})
	if err != nil {
		return s, err
	}
	if s.Dedup, err = oneOf("--dedup", f.dedup, "on", "off"); err != nil {
		return s, err
	}
	if s.History, err = oneOf("--history", f.history, "full", "none"); err != nil {
		return s, err
	}
	if err := f.layout(&s); err != nil {
		return s, err
	}
	if f.group != "" {
		s.Limits.Group = func(b contextpilot.Block) (document string, place int) { return numbered(b.ID, f.group) }
	}
	return s, nil
}

// layout fills in what the model reads: the profile's settings, and those of the flags that are given.
func (f *traceFlags) layout(s *replay.Settings) error {
	p, err := profile.Load(f.profile)
	if err != nil {
		return fmt.Errorf("--profile: %w", err)
	}
	c, err := p.Apply(contextpilot.Config{})
	if err != nil {
		return fmt.Errorf("--profile %s: %w", f.profile, err)
	}
	given := f.flags.Changed
	if given("hint") {
		if c.Notes.Hint, c.Notes.Top, err = hintForm(f.hint); err != nil {
			return err
		}
	}
	if given("hint-always") {
		c.Notes.AlwaysHint = f.alwaysHint
	}
	for name, limit := range map[string][2]*int{
		"max-displacement": {&c.Limits.MaxDisplacement, &f.limits.MaxDisplacement},
		"pin":              {&c.Limits.Pin, &f.limits.Pin},
		"keep-top-at-end":  {&c.Limits.KeepTopAtEnd, &f.limits.KeepTopAtEnd},
	} {
		if given(name) {
			*limit[0] = *limit[1]
		}
	}
	if c.Policy != "" && !given("policy") {
		s.Policy = c.Policy
	}
	s.Notes, s.Limits, s.Top, s.EchoTokens = c.Notes, c.Limits, c.Top, c.EchoTokens
	return nil
}

// checkTraceFiles wants both files; one of them may be standard input.
func checkTraceFiles(trace, blocks string) error {
	switch {
	case trace == "":
		return errors.New("--trace is required")
	case blocks == "":
		return errors.New("--blocks is required")
	case trace == "-" && blocks == "-":
		return errors.New("--trace and --blocks: only one can be standard input")
	}
	return nil
}

// hintForm reads --hint; top is 0 for the default number.
func hintForm(value string) (form contextpilot.Hint, top int, err error) {
	switch value {
	case "auto":
		return contextpilot.HintAuto, 0, nil
	case "full":
		return contextpilot.HintFull, 0, nil
	case "displaced-only":
		return contextpilot.HintDisplaced, 0, nil
	case "none", "off":
		return contextpilot.HintNone, 0, nil
	}
	if n, ok := strings.CutPrefix(value, "top-"); ok {
		if top, err := strconv.Atoi(n); err == nil && top > 0 {
			return contextpilot.HintTop, top, nil
		}
	}
	return 0, 0, fmt.Errorf("--hint %q: want auto, full, top-N, displaced-only or none", value)
}

// numbered splits an ID at the last separator; an ID without a number behind it is a document of its own.
func numbered(id, separator string) (document string, place int) {
	at := strings.LastIndex(id, separator)
	if at < 0 {
		return id, 0
	}
	n, err := strconv.Atoi(id[at+len(separator):])
	if err != nil {
		return id, 0
	}
	return id[:at], n
}

// oneOf reports whether the value is yes; anything but yes and no is an error.
func oneOf(flag, value, yes, no string) (bool, error) {
	switch value {
	case yes:
		return true, nil
	case no:
		return false, nil
	}
	return false, fmt.Errorf("%s %q: want %s or %s", flag, value, yes, no)
}
