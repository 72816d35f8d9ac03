// Command ragpilot makes inference engines reuse the context they have already read. See the commands' help.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
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
		Long: "ragpilot puts retrieved blocks into prompts so that the engine's prefix cache is reused:\nindex, reorder, dedup, " +
			"annotate. Every flag can also be set as RAGPILOT_<FLAG>, for example RAGPILOT_POLICY.",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return flagsFromEnv(cmd.Flags(), os.LookupEnv)
		},
	}
	root.AddCommand(newBench(), newBounds(), newCache(), newChat(), newCompress(), newDemo(), newDoctor(), newEngine(), newEval(), newHealth(),
		newMemory(), newModel(), newPlan(), newReplay(), newServe(), newTrace(), newVersion(), newWarm())
	return root
}
