// Command measure drives a trace through memories and writes what a judge needs, or sends it to a real server.
//
//	go run ./internal/lab/memorytrace/measure -trace T -blocks B -k 100 -out DIR
//
// writes DIR/trace.jsonl, DIR/blocks.jsonl and DIR/plan.jsonl: the trace under the labels of memories, and the plan.
//
//	go run ./internal/lab/memorytrace/measure -trace T -blocks B -k 100 -plain URL -planned URL -requests 150
//
// sends the first requests of the user who has most to two llama.cpp servers, one after the other: as found to the first, as
// planned to the second, and prints times and computed tokens.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/memorytrace"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var opts memorytrace.Options
	var f timing
	flags := flag.NewFlagSet("measure", flag.ContinueOnError)
	traceFile := flags.String("trace", "", "trace `FILE`")
	blocksFile := flags.String("blocks", "", "blocks `FILE`")
	folder := flags.String("out", "", "`FOLDER` for trace.jsonl, blocks.jsonl and plan.jsonl")
	flags.IntVar(&opts.K, "k", 0, "recall `N` memories (0: the default of package memory)")
	flags.BoolVar(&opts.Own, "own-search", false, "find memories by the store's own search, not as the trace has them")
	flags.StringVar(&opts.Policy, "policy", "", "order `POLICY` (empty: the default)")
	flags.StringVar(&f.plain, "plain", "", "base `URL` of the server that gets prompts as found")
	flags.StringVar(&f.planned, "planned", "", "base `URL` of the server that gets prompts as planned")
	flags.IntVar(&f.requests, "requests", 150, "send `N` requests of one user")
	flags.DurationVar(&f.limit, "limit", 15*time.Minute, "send nothing more after this `TIME`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	trc, blocks, err := trace.Load(*traceFile, *blocksFile)
	if err != nil {
		return err
	}
	switch {
	case *folder != "" && f.plain+f.planned == "":
		return memorytrace.Write(ctx, trc, blocks, opts, *folder)
	case *folder == "" && f.plain != "" && f.planned != "":
		return f.run(ctx, trc, blocks, opts, out)
	}
	return errors.New("want -out, or both -plain and -planned")
}
