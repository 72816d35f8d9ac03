package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/embed/minilm"
	"github.com/ragpilot/ragpilot/embed/openai"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/internal/lab/membench"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/postgres"
	"github.com/ragpilot/ragpilot/memory/sqlite"
)

// memoryBenchFlags are the flags of memory bench.
type memoryBenchFlags struct {
	data              string
	generator         membench.Options
	stores, embedders []string
	embedderModel     string
	embedderKey       string
	k, cache, answers int
	model             string
	load, writers     int
	searches          int
	pause             time.Duration
	chart             string
	json              bool
}

func newMemoryBench() *cobra.Command {
	var f memoryBenchFlags
	cmd := newCommand("bench", "Measure whether memories are found, and what their prompts cost",
		`Bench states made-up facts of several users and asks paraphrased questions: after the facts alone, after updates
and deletions, and after turns of chat. It prints the recall, the times, and for the chat the prompt tokens that an engine
with a prefix cache computes: without a memory, with the whole history, with the top k, and with ragpilot's memory. No
option of the memory is set. The same seed gives the same users everywhere.

With --load it fills one user's store with many memories, and measures time, memory and disk.`, f.run)
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "", "`FILE` of conversations and questions (JSON lines, see docs/memory.md) in place of generated users")
	flags.Uint64Var(&f.generator.Seed, "seed", 1, "`NUMBER` that all random choices follow from")
	flags.IntVar(&f.generator.Users, "users", membench.DefaultUsers, "`NUMBER` of generated users")
	flags.IntVar(&f.generator.Turns, "turns", membench.DefaultTurns, "`NUMBER` of turns of chat of each generated user")
	flags.StringSliceVar(&f.stores, "store", []string{"sqlite"},
		"`STORES` to measure: inmem, sqlite, postgres://…; the last is emptied where this command keeps its memories")
	flags.StringSliceVar(&f.embedders, "embedder", []string{"minilm", "lexical"},
		"`EMBEDDERS` to measure: minilm, minilm:DIR, lexical, or the base URL of an OpenAI-compatible server; the first one's prompts are drawn")
	flags.StringVar(&f.embedderModel, "embedder-model", "", "`MODEL` to ask an embedder at a URL for")
	flags.StringVar(&f.embedderKey, "embedder-key", "", "`KEY` for an embedder at a URL")
	flags.IntVar(&f.k, "k", memory.DefaultK, "`NUMBER` of memories in a prompt")
	flags.IntVar(&f.cache, "cache", membench.DefaultCache, "size in `TOKENS` of the smaller one of two prefix caches")
	flags.IntVar(&f.answers, "answers", 0, "have a model in this process answer `N` turns of each kind of prompt, which is slow")
	flags.StringVar(&f.model, "model", "", "`MODEL` for --answers: a GGUF file, or the name of a model that can be pulled")
	flags.IntVar(&f.load, "load", 0, "in place of all that, fill a store with `N` memories of one user and measure it")
	flags.IntVar(&f.writers, "writers", 0, "with --load, search once more while `N` writers add")
	flags.DurationVar(&f.pause, "pause", 0, "with --writers, `TIME` that each waits between two adds; 0: as fast as they can")
	flags.IntVar(&f.searches, "searches", membench.DefaultSearches, "with --load, `NUMBER` of searches")
	flags.StringVar(&f.chart, "chart", "", "`FILE` for a picture of quality against computed tokens (SVG)")
	flags.BoolVar(&f.json, "json", false, "print the report as JSON")
	return cmd
}

func (f *memoryBenchFlags) run(cmd *cobra.Command) error {
	if err := f.check(); err != nil {
		return err
	}
	var data *membench.Data
	var source string
	if f.load == 0 { // a load has no users, whose memory would be measured
		var err error
		if data, source, err = f.read(); err != nil {
			return err
		}
	}
	embedders, err := f.openEmbedders(cmd)
	if err != nil {
		return err
	}
	if f.load > 0 {
		return f.runLoad(cmd, embedders)
	}
	report := membench.Report{Source: source, Users: len(data.Cases), Pairs: data.Pairs, Disjoint: data.Disjoint}
	for _, e := range embedders {
		for _, store := range f.stores {
			fmt.Fprintf(cmd.ErrOrStderr(), "recall: store %s, embedder %s\n", storeName(store), e.name)
			err := withStore(store, func(target membench.Target, _ func() (int64, error)) error {
				target.Embedder, target.Name = e.embedder, e.name
				r, err := membench.Recall(cmd.Context(), data, target)
				report.Recall = append(report.Recall, r)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	if report.Prompts, err = f.prompts(cmd, data, embedders); err != nil {
		return err
	}
	if f.chart != "" {
		if err := os.WriteFile(f.chart, report.Prompts[0].Chart(), 0o644); err != nil {
			return fmt.Errorf("--chart: %w", err)
		}
	}
	return f.print(cmd.OutOrStdout(), report.Write, report)
}

// check reports what is wrong before anything runs.
func (f *memoryBenchFlags) check() error {
	if err := checkLimits(limited{"users", f.generator.Users, 1}, limited{"turns", f.generator.Turns, 0}, limited{"k", f.k, 1},
		limited{"cache", f.cache, 1}, limited{"answers", f.answers, 0}, limited{"load", f.load, 0}, limited{"writers", f.writers, 0},
		limited{"searches", f.searches, 1}); err != nil {
		return err
	}
	switch {
	case len(f.embedders) == 0:
		return errors.New("--embedder: want at least one")
	case len(f.stores) == 0:
		return errors.New("--store: want at least one")
	case f.pause < 0:
		return fmt.Errorf("--pause %v: want at least 0", f.pause)
	case f.writers > 0 && f.load == 0:
		return errors.New("--writers is for --load")
	case f.load > 0 && (f.data != "" || f.chart != "" || f.answers > 0):
		return errors.New("--load measures nothing else: leave out --data, --chart and --answers")
	}
	if f.chart != "" { // better now than after an hour
		if _, err := os.Stat(filepath.Dir(f.chart)); err != nil {
			return fmt.Errorf("--chart: %w", err)
		}
	}
	for _, store := range f.stores {
		if storeName(store) == "" {
			return fmt.Errorf("--store %q: want inmem, sqlite or postgres://…", store)
		}
	}
	return nil
}

// read makes the users, or reads those of --data.
func (f *memoryBenchFlags) read() (data *membench.Data, source string, err error) {
	if f.data == "" {
		generator := f.generator
		if generator.Turns == 0 {
			generator.Turns = -1
		}
		data, err = membench.Generate(generator)
		return data, fmt.Sprintf("generated with seed %d, %d turns of chat each", f.generator.Seed, f.generator.Turns), err
	}
	data, err = readFile("--data", f.data, membench.ReadRows)
	return data, filepath.Base(f.data), err
}

// prompts measures the prompts of the chat with each embedder.
func (f *memoryBenchFlags) prompts(cmd *cobra.Command, data *membench.Data, embedders []namedEmbedder) ([]membench.Prompted, error) {
	opts := membench.PromptOptions{K: f.k, Cache: f.cache, Answers: f.answers}
	if f.answers > 0 {
		path, err := modelFile(cmd.Context(), f.model, cmd.ErrOrStderr())
		if err != nil {
			return nil, err
		}
		engine, err := openLocal(cmd.Context(), path, local.Config{})
		if err != nil {
			return nil, err
		}
		defer engine.Close()
		opts.Model = engine
	}
	var all []membench.Prompted
	for _, e := range embedders {
		opts.Embedder, opts.Name = e.embedder, e.name
		opts.Progress = func(arm string) {
			fmt.Fprintf(cmd.ErrOrStderr(), "prompts: embedder %s, %s\n", e.name, arm)
		}
		p, err := membench.Prompts(cmd.Context(), data, opts)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// runLoad measures each store with each embedder.
func (f *memoryBenchFlags) runLoad(cmd *cobra.Command, embedders []namedEmbedder) error {
	var all []membench.Loaded
	for _, e := range embedders {
		for _, store := range f.stores {
			err := withStore(store, func(target membench.Target, size func() (int64, error)) error {
				target.Embedder, target.Name = e.embedder, e.name
				l, err := membench.Load(cmd.Context(), target, membench.LoadOptions{
					Memories: f.load, Writers: f.writers, Pause: f.pause, Searches: f.searches, Seed: f.generator.Seed, Size: size,
					Progress: func(step string) {
						fmt.Fprintf(cmd.ErrOrStderr(), "store %s, embedder %s: %s\n", target.Store, e.name, step)
					},
				})
				all = append(all, l)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return f.print(cmd.OutOrStdout(), func(w io.Writer) error {
		for i := range all {
			if i > 0 {
				fmt.Fprintln(w)
			}
			if err := all[i].Write(w); err != nil {
				return err
			}
		}
		return nil
	}, all)
}

// print writes tables, or the report as JSON.
func (f *memoryBenchFlags) print(out io.Writer, tables func(io.Writer) error, report any) error {
	if !f.json {
		return tables(out)
	}
	return encodeIndented(out, report)
}

// openEmbedders opens those that --embedder names.
func (f *memoryBenchFlags) openEmbedders(cmd *cobra.Command) ([]namedEmbedder, error) {
	var all []namedEmbedder
	for _, name := range f.embedders {
		e, err := openEmbedder(cmd.Context(), name, f.embedderModel, f.embedderKey, cmd.ErrOrStderr())
		if err != nil {
			return nil, fmt.Errorf("--embedder %q: %w", name, err)
		}
		all = append(all, e)
	}
	return all, nil
}

// withStore runs f with a store that is empty, and removes what it left.
func withStore(name string, f func(target membench.Target, size func() (int64, error)) error) (err error) {
	target := membench.Target{Store: storeName(name)}
	if target.Store != "sqlite" {
		target.Open = func(ctx context.Context) (memory.Backend, error) { return openStore(ctx, name) }
		return f(target, nil)
	}
	dir, err := os.MkdirTemp("", "ragpilot-memory-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	target.Open = func(ctx context.Context) (memory.Backend, error) {
		return sqlite.Open(ctx, filepath.Join(dir, "memories.db"), sqlite.Options{})
	}
	return f(target, func() (int64, error) { return folderSize(dir) })
}

// folderSize returns the bytes of the files in a folder.
func folderSize(dir string) (n int64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return 0, err
		}
		n += info.Size()
	}
	return n, nil
}

// benchName is what the benchmark's tables and collections are called on servers.
const benchName = "ragpilot_memory_bench"

// storeName returns which kind of store a flag's value names; "" for none.
func storeName(value string) string {
	kind, _, url := strings.Cut(value, "://")
	switch {
	case url && (kind == "postgres" || kind == "postgresql"):
		return "postgres"
	case !url && (value == "inmem" || value == "sqlite"):
		return value
	}
	return ""
}

// openStore opens a store other than SQLite's, empties it, and has it empty itself when it is closed.
func openStore(ctx context.Context, value string) (memory.Backend, error) {
	if value == "inmem" {
		return memory.NewInMemory(), nil
	}
	backend, err := postgres.Open(ctx, value, postgres.Options{Schema: benchName})
	if err != nil {
		return nil, err
	}
	if err := backend.Reset(ctx); err != nil {
		return nil, errors.Join(err, backend.Close())
	}
	return emptied{backend}, nil
}

// emptied is a backend that is emptied in the end.
type emptied struct{ memory.Backend }

// Close empties and closes it.
func (e emptied) Close() error {
	return errors.Join(e.Reset(context.Background()), e.Backend.Close())
}

// namedEmbedder is an embedder under the name of the command line.
type namedEmbedder struct {
	name     string
	embedder embed.Embedder
}

// openEmbedder opens what --embedder names. MiniLM is fetched unless it is there.
func openEmbedder(ctx context.Context, value, model, key string, progress io.Writer) (namedEmbedder, error) {
	kind, dir, _ := strings.Cut(value, ":")
	switch {
	case value == "lexical":
		return namedEmbedder{value, memory.Lexical}, nil
	case kind == "minilm" && (dir != "" || value == "minilm"):
		if dir == "" {
			dir = os.Getenv("RAGPILOT_MINILM")
		}
		if dir == "" {
			var err error
			fmt.Fprintln(progress, "embedder minilm: looking for the model, fetching it unless it is there")
			if dir, err = minilm.Pull(ctx, minilm.PullOptions{}); err != nil {
				return namedEmbedder{}, fmt.Errorf("%w; --embedder lexical needs no model, minilm:DIR takes one from a folder", err)
			}
		}
		m, err := minilm.Open(dir)
		return namedEmbedder{"minilm", m}, err
	case kind == "http" || kind == "https":
		e, err := openai.New(openai.Options{URL: value, Model: model, Key: key})
		name := model
		if name == "" {
			name = "server"
		}
		return namedEmbedder{name, e}, err
	}
	return namedEmbedder{}, errors.New("want minilm, minilm:DIR, lexical or the URL of a server")
}
