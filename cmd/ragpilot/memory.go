package main

import "github.com/spf13/cobra"

func newMemory() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "Measure agent memory, and make its vectors anew",
		Long:  "Memory has commands about what agents remember; see docs/memory.md.",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newMemoryBench(), newMemoryReembed())
	return cmd
}
