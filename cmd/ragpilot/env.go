package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// flagsFromEnv sets every flag that was not given from RAGPILOT_<NAME>, with dashes as underscores. The command
// line wins over the environment.
func flagsFromEnv(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		name := "RAGPILOT_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := lookup(name)
		if !ok || f.Changed || f.Name == "help" || err != nil {
			return
		}
		if e := flags.Set(f.Name, value); e != nil {
			err = fmt.Errorf("%s=%q: %w", name, value, e)
		}
	})
	return err
}
