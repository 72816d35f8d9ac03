// Command ragpilot makes inference engines reuse the context they have already read. See the commands' help.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ragpilot/ragpilot/embed/minilm"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the next signal ends whatever does not look at the context
	if err := newRoot().ExecuteContext(ctx); err != nil {
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			err = errors.New("interrupted; what was written is not complete")
		}
		fmt.Fprintln(os.Stderr, "ragpilot:", err)
		os.Exit(exitStatus(err))
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "ragpilot",
		Short: "Make inference engines reuse the context they have already read",
		Long: `ragpilot puts retrieved blocks into prompts so that the engine's prefix cache is reused:
index, reorder, dedup, annotate. Every flag can also be set as RAGPILOT_<FLAG>, for example RAGPILOT_POLICY.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return flagsFromEnv(cmd.Flags(), os.LookupEnv)
		},
	}
	root.AddCommand(newBatch(), newBench(), newBounds(), newCache(), newChat(), newCompress(), newDemo(), newDoctor(), newEngine(),
		newEval(), newHealth(), newLint(), newMemory(), newModel(), newPlan(), newReplay(), newServe(), newTrace(), newVersion(), newWarm())
	return root
}

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
