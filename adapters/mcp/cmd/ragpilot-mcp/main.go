// Command ragpilot-mcp serves a folder of documents and a file of memories to an agent, over standard input and output:
//
//	ragpilot-mcp --docs ./handbook --memory ~/memories.db --user ana
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
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
		backend, err := sqlite.Open(ctx, *file, sqlite.Options{})
		if err != nil {
			return err
		}
		store, err := memory.New(backend, memory.Config{})
		if err != nil {
			return errors.Join(err, backend.Close())
		}
		defer store.Close()
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
