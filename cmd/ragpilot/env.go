package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ragpilot/ragpilot/embed/minilm"
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

// unknownVariables says which RAGPILOT_ variables set no flag: a misspelt one would have no effect without a word. Those that
// Kubernetes sets beside a service whose name begins with ragpilot are left out.
func unknownVariables(flags *pflag.FlagSet, environ []string) []string {
	ofServices := regexp.MustCompile(`_SERVICE_(HOST|PORT)|_PORT_[0-9]+_(TCP|UDP|SCTP)|_PORT$`)
	var w []string
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		flag, ours := strings.CutPrefix(name, "RAGPILOT_")
		if !ours || name == minilm.FolderVariable || flags.Lookup(strings.ToLower(strings.ReplaceAll(flag, "_", "-"))) != nil ||
			ofServices.MatchString(name) {
			continue
		}
		w = append(w, name+" has no effect: there is no flag --"+strings.ToLower(strings.ReplaceAll(flag, "_", "-")))
	}
	return w
}
