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
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/llamacpp"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/lab/figures"
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

// timing sends requests to two servers that do nothing else.
type timing struct {
	plain, planned string
	requests       int
	limit          time.Duration
}

// arm is one of the two, with what it has measured.
type arm struct {
	name   string
	path   *memorytrace.Path
	engine *llamacpp.Engine

	ttft             []time.Duration
	prompt, computed int
}

func (f timing) run(ctx context.Context, trc []trace.Request, blocks *trace.Blocks, opts memorytrace.Options, out io.Writer) (err error) {
	asFound := opts
	asFound.Policy = "retrieval"
	arms := []*arm{{name: "as found"}, {name: "as planned"}}
	for i, of := range []struct {
		url  string
		opts memorytrace.Options
	}{{f.plain, asFound}, {f.planned, opts}} {
		if err := arms[i].open(ctx, trc, blocks, of.opts, of.url); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, arms[i].close()) }()
	}
	began := time.Now()
	for _, q := range f.chosen(arms[0].path, trc) {
		if time.Since(began) > f.limit {
			break
		}
		for _, a := range arms { // side by side, so that a slower minute of the machine is one for both
			if err := a.send(ctx, q); err != nil {
				return err
			}
		}
	}
	return report(out, arms)
}

// chosen returns the first requests of the user who has most.
func (f timing) chosen(p *memorytrace.Path, trc []trace.Request) []trace.Request {
	of := map[string][]trace.Request{}
	most := ""
	for _, q := range trc {
		user := p.User(q)
		of[user] = append(of[user], q)
		if len(of[user]) > len(of[most]) {
			most = user
		}
	}
	return of[most][:min(f.requests, len(of[most]))]
}

func (a *arm) open(ctx context.Context, trc []trace.Request, blocks *trace.Blocks, opts memorytrace.Options, url string) (err error) {
	if a.path, err = memorytrace.New(ctx, trc, blocks, opts); err != nil {
		return err
	}
	a.engine, err = llamacpp.New(llamacpp.Config{Server: openai.Config{BaseURL: url, Retries: -1}})
	if err != nil {
		return errors.Join(err, a.path.Close())
	}
	a.engine.Subscribe(a.path.Pilot().Sink(contextpilot.Scope{}))
	return nil
}

func (a *arm) close() error { return errors.Join(a.path.Close(), a.engine.Close()) }

func (a *arm) send(ctx context.Context, q trace.Request) error {
	turn, err := a.path.Turn(ctx, q)
	if err != nil {
		return err
	}
	response, err := a.engine.Generate(ctx, engines.Request{
		ID: turn.Full.RequestID, MaxTokens: 1,
		Messages: []engines.Message{{Role: engines.System, Content: trace.System}, {Role: engines.User, Content: turn.Full.Prompt(q.Query)}},
	}, nil)
	if err != nil {
		return fmt.Errorf("%s: request %q: %w", a.name, q.ID, err)
	}
	if !response.Usage.CachedKnown {
		return fmt.Errorf("%s: the server does not say what it read from its cache", a.name)
	}
	a.ttft = append(a.ttft, response.TTFT)
	a.prompt += response.Usage.PromptTokens
	a.computed += response.Usage.PromptTokens - response.Usage.CachedTokens
	return nil
}

// report prints a row for each arm, and how many times as much the first one took.
func report(out io.Writer, arms []*arm) error {
	if len(arms[0].ttft) == 0 {
		return errors.New("nothing was sent")
	}
	var failed error
	printf := func(format string, args ...any) {
		_, err := fmt.Fprintf(out, format, args...)
		failed = cmp.Or(failed, err)
	}
	n := len(arms[0].ttft)
	printf("| | requests | prompt tokens | computed | mean TTFT | median TTFT |\n|---|---|---|---|---|---|\n")
	for _, a := range arms {
		printf("| %s | %d | %d | %d | %.2f s | %.2f s |\n", a.name, n, a.prompt, a.computed, mean(a.ttft).Seconds(), median(a.ttft).Seconds())
	}
	plain, planned := arms[0], arms[1]
	printf("| ratio | | %.2f | %.2f | %.2f | %.2f |\n", figures.Ratio(plain.prompt, planned.prompt),
		figures.Ratio(plain.computed, planned.computed),
		mean(plain.ttft).Seconds()/mean(planned.ttft).Seconds(), median(plain.ttft).Seconds()/median(planned.ttft).Seconds())
	return failed
}

func mean(d []time.Duration) (sum time.Duration) {
	for _, x := range d {
		sum += x
	}
	return sum / time.Duration(len(d))
}

func median(d []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(d))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
