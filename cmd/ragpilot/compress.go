package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
	"github.com/ragpilot/ragpilot/retriever/bleve"
)

// compressFlags are what the command line says.
type compressFlags struct {
	local.Compression
	docs, notes string
	keepNotes   string
	slot        local.SlotFile // with --format llama-slot
}

// llamaSlot is a --format: a slot file of llama-server.
const llamaSlot = "llama-slot"

func newCompress() *cobra.Command {
	f := &compressFlags{}
	cmd := newCommand("compress", "Compress a folder of documents for a task, for a model in this process or a llama-server",
		`Compress lets a model read a folder of documents once, keeps of what it computed the part that matters to a task, and
writes it to a file. Chat --context and engine serve --context answer questions behind it at once. What matters is
what notes on the documents attend to: notes of yours are far better than those of a small model (docs/compression.md).
The file is for the same model and the same kind of processor or card. Anyone who can read it can find out what the documents
say: only the user may read it.
With --format llama-slot it is a slot file of llama-server, for the same GGUF file, with a note beside it (docs/llamacpp.md).`, f.run)
	f.register(cmd.Flags())
	return cmd
}

func (f *compressFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.docs, "docs", "", "folder of documents: text, Markdown, HTML, PDF: `DIR`")
	flags.StringVar(&f.Task, "task", "", "what the documents are for, as one would say it to the model: `TEXT`")
	flags.StringVar(&f.Budget, "budget", local.DefaultBudget,
		"what is kept: a share, or a number of tokens, of all documents or, with --by-document, of each: `N|25%`")
	flags.StringVar(&f.notes, "notes", "", "`FILE` with notes that say what matters; empty: the model writes them")
	flags.StringVar(&f.keepNotes, "notes-out", "", "write the model's notes to `FILE`, to look at")
	flags.StringVar(&f.NotesKind, "notes-kind", local.DefaultNotesKind,
		"the words that ask the model for notes: `"+strings.Join(local.NotesKinds(), "|")+"`")
	flags.IntVar(&f.MaxNotes, "max-notes", local.DefaultMaxNotes, "the model's notes are at most so long, in `TOKENS`")
	flags.BoolVar(&f.ByDocument, "by-document", false,
		"compute each document by itself, so that one that changes does not change the others; unchanged ones are taken from an earlier --out")
	flags.StringVar(&f.Scorer, "scorer", "reference", "how tokens are chosen: `"+strings.Join(local.Scorers(), "|")+"`")
	flags.StringVar(&f.Format, "format", "int8",
		"`f32|f16|int8|llama-slot`: numbers in the file, or a slot file of llama-server to be written to its --slot-save-path")
	flags.StringVar(&f.slot.Type, "slot-type", "f16",
		"`f16|f32`: keys and values of the server's cache, with --format llama-slot (its --cache-type-k and --cache-type-v)")
	flags.IntVar(&f.slot.Parallel, "parallel", 1, "`N` slots of the server, with --format llama-slot (its --parallel)")
	flags.IntVar(&f.Window, "window", local.DefaultWindow, "`TOKENS` that are computed together; longer corpora are cut")
	flags.StringVar(&f.Out, "out", "", "`FILE` to write")
	flags.StringVar(&f.Model, "model", defaultModel,
		"`FILE|NAME`: a GGUF file, or a model's name, which is fetched if it is not there")
	flags.IntVar(&f.Threads, "threads", 0, "`N` threads that compute; 0: one for each processor")
	registerDevice(flags, &f.Device, &f.DeviceBytes)
}

// fields are the flags of what Compression and SlotFile have other names for.
var fields = []struct{ field, flag string }{
	{"NotesKind", "--notes-kind"},
	{"MaxNotes", "--max-notes"},
	{"Documents", "--docs"},
	{"Threads", "--threads"},
	{"DeviceBytes", "--device-memory"},
	{"Budget", "--budget"},
	{"Scorer: scorer", "--scorer"},
	{"Format: format", "--format"},
	{"Window", "--window"},
	{"Model", "--model"},
	{"Task", "--task"},
	{"Out:", "--out:"},
	{"Type: type", "--slot-type"},
	{"Parallel", "--parallel"},
}

// named has the flags' names in an error of Compress or WriteSlotFile.
func named(err error) error {
	text := err.Error()
	for _, prefix := range []string{"compress: ", "slot file: ", "Compression."} {
		text = strings.TrimPrefix(text, prefix)
	}
	for _, f := range fields {
		if rest, ok := strings.CutPrefix(text, f.field); ok {
			return renamed{f.flag + rest, err}
		}
	}
	return renamed{text, err}
}

// renamed is an error with another text.
type renamed struct {
	text string
	error
}

func (e renamed) Error() string { return e.text }
func (e renamed) Unwrap() error { return e.error }

func (f *compressFlags) run(cmd *cobra.Command) error {
	for _, x := range []struct{ flag, value, want string }{
		{"docs", f.docs, "want a folder of documents"},
		{"task", strings.TrimSpace(f.Task), "want what the documents are for"},
		{"out", f.Out, "want a file to write"},
	} {
		if x.value == "" {
			return fmt.Errorf("--%s %q: %s", x.flag, x.value, x.want)
		}
	}
	ctx, out, log := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	if err := f.read(ctx, log); err != nil {
		return err
	}
	if err := checkDevice(f.Device, f.DeviceBytes); err != nil {
		return err
	}
	if err := fast(); err != nil && (f.Device == "cpu" || !gpu.Built()) {
		fmt.Fprintf(log, "this takes long: %v\n", err)
	}
	var err error
	if f.Model, err = modelFile(ctx, f.Model, log); err != nil {
		return err
	}
	f.Progress = left(log, time.Now)
	done, err := f.compress(ctx)
	if err != nil {
		return err
	}
	if done.Fallback != "" {
		fmt.Fprintln(log, "the processor computed:", done.Fallback)
	}
	if f.keepNotes != "" {
		if err := os.WriteFile(f.keepNotes, []byte(strings.Join(done.Notes, "\n\n")+"\n"), 0o600); err != nil {
			return fmt.Errorf("--notes-out: %w", err)
		}
	}
	printCompressed(out, done)
	return nil
}

// compress writes a context, or a slot file of one.
func (f *compressFlags) compress(ctx context.Context) (done local.Compressed, err error) {
	if f.Format != llamaSlot {
		if done, err = local.Compress(ctx, f.Compression); err != nil {
			err = named(err)
		}
		return done, err
	}
	dir, err := os.MkdirTemp("", "ragpilot-compress-") // mode 0700
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c, slot := f.Compression, f.slot
	slot.Model, slot.Out = c.Model, c.Out
	c.Format, c.Out = "f32", filepath.Join(dir, "context") // rounded once, for the server
	slot.Context = c.Out
	if err := slot.Check(); err != nil {
		return done, named(err)
	}
	if done, err = local.Compress(ctx, c); err != nil {
		return done, named(err)
	}
	written, err := local.WriteSlotFile(slot)
	if err != nil {
		return done, named(err)
	}
	done.File, done.Bytes, done.Format = written.File, written.Bytes,
		fmt.Sprintf("%s, %s, for --parallel %d", llamaSlot, slot.Type, slot.Parallel)
	return done, nil
}

// maxNotesFile bounds a file of notes, in bytes.
const maxNotesFile = 1 << 20

// read reads documents and notes.
func (f *compressFlags) read(ctx context.Context, log io.Writer) error {
	texts, skipped, err := bleve.Texts(ctx, bleve.Options{Dir: f.docs, Include: bleve.Formats()})
	for _, s := range skipped {
		fmt.Fprintf(log, "skipped %v\n", s.Err)
	}
	if err != nil {
		return fmt.Errorf("--docs: %w", err)
	}
	for _, t := range texts {
		f.Documents = append(f.Documents, local.Document{Name: t.Name, Text: t.Text})
	}
	if f.notes == "" {
		return nil
	}
	notes, err := readFile("--notes", f.notes, func(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, maxNotesFile+1)) })
	if err != nil {
		return err
	}
	if f.Notes = strings.TrimSpace(string(notes)); f.Notes == "" || len(notes) > maxNotesFile {
		return fmt.Errorf("--notes %s: %d bytes of text, want some and at most %d", f.notes, len(f.Notes), maxNotesFile)
	}
	return nil
}

// left shows how much is done and how much time is left: on a terminal often, elsewhere every half a minute.
func left(w io.Writer, now func() time.Time) func(done float64) {
	began, every, line := now(), 30*time.Second, "%3.0f %% done, about %v left\n"
	if terminal(w) {
		every, line = 200*time.Millisecond, "\r%3.0f %% done, about %v left   "
	}
	drawn := began
	return func(done float64) {
		at := now()
		last := done >= 1 && terminal(w)
		if done <= 0 || at.Sub(drawn) < every && !last {
			return
		}
		drawn = at
		rest := time.Duration(float64(at.Sub(began)) * (1 - done) / done)
		fmt.Fprintf(w, line, math.Floor(100*done), rest.Round(time.Second))
		if last {
			fmt.Fprintln(w)
		}
	}
}

func printCompressed(out io.Writer, c local.Compressed) {
	mode := "joint"
	if c.ByDocument {
		mode = "by document"
	}
	fmt.Fprintf(out, "%s: %d documents, %s, scorer %s, notes: %s\n", c.File, c.Documents, mode, c.Scorer, c.CompressedContext.Notes)
	fmt.Fprintf(out, "%d tokens → %d slots (%.1f %%), %d bytes (%s)\n", c.Tokens, c.Slots, 100*float64(c.Slots)/float64(c.Tokens), c.Bytes,
		c.Format)
	fmt.Fprintf(out, "%d tokens computed in %v", c.Computed, c.Took.Round(100*time.Millisecond))
	if c.Reused > 0 {
		fmt.Fprintf(out, "; %d of %d parts are as before", c.Reused, c.Parts)
	}
	fmt.Fprintln(out)
	if n := c.Questions(); n > 0 {
		fmt.Fprintf(out, "computing the documents once takes %v: it pays from %d questions on, if each computed them\n",
			c.Prefill.Round(100*time.Millisecond), n)
	}
	if c.CompressedContext.Notes == "model" && len(c.Notes) > 0 {
		fmt.Fprintf(out, "the model wrote %d notes; look at them (--notes-out) before you rely on it\n", len(c.Notes))
	}
}

// contexts reads the values of a flag that may be given several times.
func contexts(values []string) (map[string]string, error) {
	all := map[string]string{}
	for _, v := range values {
		name, file, ok := strings.Cut(v, "=")
		if !ok || name == "" || file == "" {
			return nil, fmt.Errorf("--context %q: want NAME=FILE", v)
		}
		if _, there := all[name]; there {
			return nil, fmt.Errorf("--context %q: there is one of this name", v)
		}
		all[name] = file
	}
	return all, nil
}
