package main

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ragpilot/ragpilot/internal/base/durable"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

func newBenchGPU() *cobra.Command {
	var out string
	cmd := newCommand("gpu", "Measure the local engine's operations on a card, beside what bounds them",
		`Gpu measures each operation of the local engine on the first card by the card's own clock, in the same run as what bounds
it: a copy of as many bytes, or the card's peak in arithmetic. It checks that the results are those of the processor, and prints a table.
Without a card it says "not run".`, func(cmd *cobra.Command) error {
			var table bytes.Buffer
			m, err := gpu.Measure(cmd.Context(), func(next string) { fmt.Fprintln(cmd.ErrOrStderr(), "measuring", next) })
			switch {
			case errors.Is(err, gpu.ErrNoDevice):
				fmt.Fprintf(&table, "not run: %v\n", err)
			case err != nil:
				return err
			default:
				if err := m.WriteTable(&table); err != nil {
					return err
				}
			}
			if out != "" {
				page := append([]byte(benchGPUHead), table.Bytes()...)
				if err := durable.WritePath(out, page); err != nil {
					return fmt.Errorf("--out: %w", err)
				}
			}
			_, err = cmd.OutOrStdout().Write(table.Bytes())
			return err
		})
	cmd.Flags().StringVar(&out, "out", "", "write the table to `FILE`, too, as docs/gpu-results.md has it; empty: do not")
	return cmd
}

// benchGPUHead is what stands above the table in a file.
const benchGPUHead = `# Measurements on a card

What each operation of the [local engine on a card](gpu.md) takes. This page was written by
` + "`" + `ragpilot bench gpu --out docs/gpu-results.md` + "`" + `.

`
