package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

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
			m, err := gpu.Measure(cmd.Context(), func(next string) { fmt.Fprintln(cmd.ErrOrStderr(), "measuring", next) })
			return reportGPU(cmd.OutOrStdout(), out, m, err)
		})
	cmd.Flags().StringVar(&out, "out", "", "write the table to `FILE`, too, as docs/gpu-results.md has it; empty: do not")
	return cmd
}

// reportGPU prints what was measured, or why nothing was, and writes it to the file out, if that has a name. Wrong results are an error;
// goals that were not reached are not.
func reportGPU(w io.Writer, out string, m gpu.Measurements, err error) error {
	var table bytes.Buffer
	switch {
	case errors.Is(err, gpu.ErrNoDevice):
		fmt.Fprintf(&table, "%s%v\n", notRun, err)
	case err != nil:
		return err
	default:
		if err := m.WriteTable(&table); err != nil {
			return err
		}
	}
	if _, err := w.Write(table.Bytes()); err != nil {
		return err
	}
	var wrong, written error
	if names := m.Wrong(); len(names) > 0 {
		wrong = fmt.Errorf("wrong results: %s", strings.Join(names, "; "))
	}
	if out != "" {
		written = writeBenchGPU(out, m.Emulated, table.Bytes())
	}
	return errors.Join(wrong, written)
}

// notRun begins what stands in place of a table where nothing was measured.
const notRun = "not run: "

// writeBenchGPU writes a page with the table, if it is not of the emulated driver. Measurements are not overwritten by none.
func writeBenchGPU(name string, emulated bool, table []byte) error {
	if old, err := os.ReadFile(name); err == nil && bytes.HasPrefix(table, []byte(notRun)) && !bytes.Contains(old, []byte(notRun)) {
		return fmt.Errorf("--out %s: not written: it has measurements", name)
	}
	if emulated {
		return errors.New("--out: not written: the figures are of the emulated driver and say nothing about a card")
	}
	if err := durable.WritePath(name, append([]byte(benchGPUHead), table...)); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// benchGPUHead is what stands above the table in a file.
const benchGPUHead = `# Measurements on a card

What each operation of the [local engine on a card](gpu.md) takes. This page was written by
` + "`" + `ragpilot bench gpu --out docs/gpu-results.md` + "`" + `.

`
