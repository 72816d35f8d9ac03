package main

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/stabilise"
)

// registerRules adds the flags of the stabiliser.
func registerRules(flags *pflag.FlagSet, s *settings.Stabilise) {
	flags.Var((*ruleFlag)(s), "stabilise",
		"keep the beginnings of prompts as they were, by `RULES`: tools,schemas,volatile,memories; empty: none")
	flags.StringVar(&s.Place, "stabilise-place", s.Place,
		"how what leaves the system text is sent: `auto|system|user`, as a system message or as a note of the user's message")
}

// ruleFlag is a list of rules as a flag.
type ruleFlag settings.Stabilise

// Set switches the rules of a list on, and all others off.
func (f *ruleFlag) Set(text string) error {
	r, err := stabilise.ParseRules(strings.FieldsFunc(text, func(r rune) bool { return r == ',' }))
	if err == nil {
		f.Tools, f.Schemas, f.Volatile, f.Memories = r.Tools, r.Schemas, r.Volatile, r.Memories
	}
	return err
}

func (f *ruleFlag) String() string {
	var on []string
	for i, is := range []bool{f.Tools, f.Schemas, f.Volatile, f.Memories} {
		if is {
			on = append(on, stabilise.RuleNames[i])
		}
	}
	return strings.Join(on, ",")
}

// Type is the kind of value in the help.
func (f *ruleFlag) Type() string { return "rules" }
