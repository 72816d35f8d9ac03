package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/embed/minilm"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/sqlite"
)

func newMemory() *cobra.Command {
	return newGroup("memory", "Measure agent memory, and make its vectors anew",
		"Memory has commands about what agents remember; see docs/memory.md.", newMemoryBench(), newMemoryReembed())
}

func newMemoryReembed() *cobra.Command {
	var s memory.EmbedderSetting
	cmd := &cobra.Command{
		Use:   "reembed FILE|FOLDER",
		Short: "Make the vectors of stored memories anew, with another embedder",
		Long: `Reembed brings a SQLite store of memories, or every store (*.db) in the folder of serve's --memory-dir, to an embedder.
Vectors of another one are removed, all at once, and made anew; until one is, its memory is found by its words. A store
that is the embedder's already only has missing vectors made. If it is interrupted, running it again goes on.

Servers may go on using the stores. One with another embedder fails from then on, or searches by words with auto.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return reembed(cmd, args[0], s) },
	}
	flags := cmd.Flags()
	flags.StringVar(&s.Value, "embedder", memory.AutoEmbedder,
		"`auto|minilm|minilm:DIR|lexical|URL`, as serve's --memory-embedder; auto is minilm here")
	flags.StringVar(&s.Model, "embedder-model", "", "`MODEL` to ask an embedder at a URL for")
	flags.StringVar(&s.Key, "embedder-key", "", "`KEY` for an embedder at a URL")
	return cmd
}

func reembed(cmd *cobra.Command, path string, s memory.EmbedderSetting) error {
	files, err := storesAt(path)
	if err != nil {
		return err
	}
	e, err := memory.LoadEmbedder(cmd.Context(), s, minilm.Bar(cmd.ErrOrStderr()))
	switch {
	case errors.Is(err, memory.ErrNoEmbedderModel):
		return fmt.Errorf("--embedder-model: %w", err)
	case err != nil:
		return fmt.Errorf("--embedder %w", err)
	}
	var errs []error
	for _, file := range files {
		if err := reembedFile(cmd, file, e); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
		}
		if cmd.Context().Err() != nil {
			return errors.New("interrupted: the same command goes on where this one was")
		}
	}
	return errors.Join(errs...)
}

// storesAt returns the file, or the stores in the folder.
func storesAt(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && filepath.Ext(entry.Name()) == ".db" {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("folder %q: no store of memories (*.db) in it", path)
	}
	return files, nil
}

// reembedFile brings one store to the embedder.
func reembedFile(cmd *cobra.Command, file string, e embed.Embedder) (err error) {
	ctx := cmd.Context()
	backend, err := sqlite.Open(ctx, file, sqlite.Options{})
	if err != nil {
		return err
	}
	counted := &countedEmbedder{Embedder: e, file: file, out: cmd.ErrOrStderr()}
	cfg := memory.Config{Embedder: counted}
	if e == memory.Lexical { // which Reembed knows by its value
		cfg.Embedder = e
	}
	store, err := memory.New(backend, cfg)
	if err != nil {
		return errors.Join(err, backend.Close())
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := store.Reembed(ctx); err != nil {
		return fmt.Errorf("%w; %d memories were embedded, and the same command goes on from there", err, counted.done)
	}
	total := 0
	err = backend.Scan(ctx, memory.Scope{}, memory.Memories, func(*memory.Record) bool { total++; return true })
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d memories, %d embedded now; embedder %s\n", file, total, counted.done, embed.NameOf(e))
	return err
}

// reembedLine is after how many memories a line of progress is written.
const reembedLine = 512

// countedEmbedder counts the documents that an embedder embeds, and writes how many now and then.
type countedEmbedder struct {
	embed.Embedder
	file string
	out  io.Writer
	done int
}

// Name is the embedder's.
func (c *countedEmbedder) Name() string { return embed.NameOf(c.Embedder) }

// EmbedDocuments counts.
func (c *countedEmbedder) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := c.Embedder.EmbedDocuments(ctx, texts)
	if err != nil {
		return nil, err
	}
	before := c.done
	c.done += len(texts)
	if c.done/reembedLine > before/reembedLine {
		_, _ = fmt.Fprintf(c.out, "%s: %d memories embedded\n", c.file, c.done)
	}
	return vectors, nil
}
