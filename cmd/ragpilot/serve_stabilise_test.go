package main

import (
	"testing"

	"github.com/spf13/pflag"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/stabilise"
)

// The flag names all rules that are on, and those of a configuration are off where it does not name them.
func TestRuleFlag(t *testing.T) {
	for text, want := range map[string]stabilise.Rules{
		"": {}, "tools": {Tools: true}, "memories,volatile": {Volatile: true, Memories: true},
		"tools,schemas,volatile,memories": {Tools: true, Schemas: true, Volatile: true, Memories: true},
	} {
		s := settings.Stabilise{Schemas: true}
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		registerRules(flags, &s)
		if err := flags.Parse([]string{"--stabilise", text}); err != nil || s.Rules() != want {
			t.Errorf("%q: %+v, %v", text, s.Rules(), err)
		}
		again := settings.Stabilise{}
		if err := (*ruleFlag)(&again).Set((*ruleFlag)(&s).String()); err != nil || again.Rules() != want {
			t.Errorf("%q shows as %q: %+v, %v", text, (*ruleFlag)(&s).String(), again.Rules(), err)
		}
	}
	if err := (*ruleFlag)(&settings.Stabilise{}).Set("tools,clock"); err == nil {
		t.Error("an unknown rule was taken")
	}
}
