package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ragpilot/ragpilot/internal/lab/bounds"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/lab/workload"
)

func newTrace() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "Make and cut traces",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTraceGen(), newTraceCut())
	return cmd
}

// genFlags are the flags of trace gen. Values of opt count only if their flag was given.
type genFlags struct {
	trace, blocks, workload string
	overlap                 float64
	opt                     workload.Options
}

func newTraceGen() *cobra.Command {
	var f genFlags
	cmd := &cobra.Command{
		Use:   "gen --trace T --blocks B",
		Short: "Make a synthetic trace and its blocks",
		Long: "Gen writes a synthetic trace and its blocks. The same flags give the same bytes everywhere. Without --workload,\n" +
			"requests come from topics, as the flags describe; flags also change named workloads. A summary goes to\n" +
			"standard error.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.trace, "trace", "", "trace `FILE` to write (may end in .gz, - for standard output)")
	flags.StringVar(&f.blocks, "blocks", "", "blocks `FILE` to write (may end in .gz, - for standard output)")
	flags.StringVar(&f.workload, "workload", "topics", fmt.Sprintf("`NAME`: %v", workload.Names()))
	flags.Uint64Var(&f.opt.Seed, "seed", 0, "`NUMBER` that all random choices follow from")
	flags.IntVar(&f.opt.Contexts, "contexts", 0, "`NUMBER` of requests (default sessions x turns, or 1000)")
	flags.IntVar(&f.opt.K, "k", 0, "mean `NUMBER` of blocks of a request (default 15)")
	flags.IntVar(&f.opt.KSpread, "k-spread", 0, "let k vary by up to `N` up and down")
	flags.IntVar(&f.opt.Pool, "pool", 0, "`NUMBER` of distinct blocks (default a third of contexts, at least 20 k for each tenant)")
	flags.Float64Var(&f.opt.Zipf, "zipf", 0, "`EXPONENT` of the popularity of topics, one less than that of blocks within a topic (default 1)")
	flags.IntVar(&f.opt.Topics, "topics", 0, "`NUMBER` of topics (default pool / 2k, with --growing pool / 4k)")
	flags.Float64Var(&f.opt.Drift, "drift", 0, "`SHARE` of topics that become the most popular one for a time")
	flags.IntVar(&f.opt.Bursts, "bursts", 0, "mean `LENGTH` of runs of requests on one topic")
	flags.IntVar(&f.opt.Tenants, "tenants", 0, "`NUMBER` of tenants, which never share a block (default 1)")
	flags.IntVar(&f.opt.Sessions, "sessions", 0, "`NUMBER` of sessions (default contexts / turns)")
	flags.IntVar(&f.opt.Turns, "turns", 0, "`NUMBER` of turns of each session (default contexts / sessions, or 1)")
	flags.IntVar(&f.opt.BlockTokens, "block-tokens", 0, "mean `LENGTH` of a block in tokens (default 100)")
	flags.BoolVar(&f.opt.EqualBlocks, "equal-blocks", false, "make all blocks of the same length")
	flags.BoolVar(&f.opt.Growing, "growing", false, "let the blocks of a topic appear as time goes on")
	flags.Float64Var(&f.overlap, "overlap", 0, "mean `SHARE` of blocks that the request before on the topic or in the session had too;\n0: no block is ever shared (default: left to chance)")
	return cmd
}

// options returns the workload's options with those changed that were given as flags.
func (f *genFlags) options(flags *pflag.FlagSet) (workload.Options, error) {
	opt, err := workload.Named(f.workload)
	if err != nil {
		return opt, fmt.Errorf("--workload %w", err)
	}
	set := map[string]func(){
		"seed":         func() { opt.Seed = f.opt.Seed },
		"zipf":         func() { opt.Zipf = f.opt.Zipf },
		"drift":        func() { opt.Drift = f.opt.Drift },
		"equal-blocks": func() { opt.EqualBlocks = f.opt.EqualBlocks },
		"growing":      func() { opt.Growing = f.opt.Growing },
		"overlap":      func() { opt.Overlap = &f.overlap },
		"k-spread":     func() { opt.KSpread = f.opt.KSpread },
		"bursts":       func() { opt.Bursts = f.opt.Bursts },
	}
	counts := map[string]struct{ to, from *int }{ // at least 1 when given
		"contexts":     {&opt.Contexts, &f.opt.Contexts},
		"k":            {&opt.K, &f.opt.K},
		"pool":         {&opt.Pool, &f.opt.Pool},
		"topics":       {&opt.Topics, &f.opt.Topics},
		"tenants":      {&opt.Tenants, &f.opt.Tenants},
		"sessions":     {&opt.Sessions, &f.opt.Sessions},
		"turns":        {&opt.Turns, &f.opt.Turns},
		"block-tokens": {&opt.BlockTokens, &f.opt.BlockTokens},
	}
	flags.Visit(func(x *pflag.Flag) {
		if s := set[x.Name]; s != nil {
			s()
		}
		if c, ok := counts[x.Name]; ok {
			if *c.from < 1 && err == nil {
				err = fmt.Errorf("--%s %d: must be at least 1", x.Name, *c.from)
			}
			*c.to = *c.from
		}
	})
	return opt, err
}

func (f *genFlags) run(cmd *cobra.Command) error {
	if f.trace == "" {
		return errors.New("--trace is required")
	}
	if f.blocks == "" {
		return errors.New("--blocks is required")
	}
	if f.trace == f.blocks {
		return fmt.Errorf("--trace and --blocks: both are %s", f.trace)
	}
	opt, err := f.options(cmd.Flags())
	if err != nil {
		return err
	}
	g, err := workload.New(opt)
	if _, ok := errors.AsType[*workload.OptionError](err); ok {
		return fmt.Errorf("--%w", err)
	}
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	sum := newSummary()
	err = writeTrace(cmd.OutOrStdout(), f.trace, func(w *trace.Writer) error {
		for q := range g.Requests() {
			if err := errors.Join(ctx.Err(), w.WriteRequest(q), sum.add(q)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = writeTrace(cmd.OutOrStdout(), f.blocks, func(w *trace.Writer) error {
		for b := range g.Blocks() {
			if err := errors.Join(ctx.Err(), w.WriteBlock(b)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return sum.print(ctx, cmd.ErrOrStderr())
}

// writeTrace lets lines write to path; "-" is out.
func writeTrace(out io.Writer, path string, lines func(*trace.Writer) error) error {
	if path == "-" {
		return lines(trace.NewWriter(out))
	}
	w, err := trace.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(lines(w), w.Close())
}

func newTraceCut() *cobra.Command {
	var in, out string
	var k, contexts, sessions int
	cmd := &cobra.Command{
		Use:   "cut --trace T --out F",
		Short: "Keep the first documents, requests or sessions of a trace",
		Long: "Cut writes a trace with fewer documents or requests: of each request its first --k documents, the first --contexts\n" +
			"requests, and of these the requests of the first --sessions sessions. A plan made with plan --k N belongs to the\n" +
			"trace that cut --k N writes.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case in == "":
				return errors.New("--trace is required")
			case out == "":
				return errors.New("--out is required")
			case sameFile(in, out):
				return fmt.Errorf("--out %s: is the trace that is read", out)
			}
			for _, x := range []struct {
				name  string
				value int
			}{{"k", k}, {"contexts", contexts}, {"sessions", sessions}} {
				if x.value < 0 {
					return fmt.Errorf("--%s %d: must not be negative", x.name, x.value)
				}
			}
			if k == 0 && contexts == 0 && sessions == 0 {
				return errors.New("--k, --contexts, --sessions: give at least one")
			}
			r, err := trace.Open(in, nil)
			if err != nil {
				return err
			}
			defer r.Close()
			return writeTrace(cmd.OutOrStdout(), out, func(w *trace.Writer) error {
				kept := map[string]bool{}
				n := 0
				for q, err := range r.All() {
					if err = errors.Join(cmd.Context().Err(), err); err != nil {
						return err
					}
					if n++; contexts > 0 && n > contexts {
						return nil
					}
					if !kept[q.Session] {
						if sessions > 0 && len(kept) == sessions {
							continue
						}
						kept[q.Session] = true
					}
					if k > 0 && k < len(q.Docs) {
						q.Docs = q.Docs[:k]
					}
					if err := w.WriteRequest(q); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&in, "trace", "", "trace `FILE` (JSON lines, may end in .gz, - for standard input)")
	flags.StringVar(&out, "out", "", "`FILE` to write (may end in .gz, - for standard output)")
	flags.IntVar(&k, "k", 0, "keep the first `N` documents of each request (0: all)")
	flags.IntVar(&contexts, "contexts", 0, "keep the first `N` requests (0: all)")
	flags.IntVar(&sessions, "sessions", 0, "keep the first `N` sessions (0: all)")
	return cmd
}

// sameFile reports whether writing b would destroy a.
func sameFile(a, b string) bool {
	if a == "-" || b == "-" {
		return false
	}
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
}

// overlapSample is how many requests are compared with all earlier ones for the mean overlap.
const overlapSample = 2000

// summary collects what trace gen reports.
type summary struct {
	requests, docs int
	sessions       map[string]struct{}
	sets           *bounds.Problem // each request by itself, each block of weight 1
}

func newSummary() *summary {
	return &summary{sessions: map[string]struct{}{}, sets: bounds.New(nil, false)}
}

func (s *summary) add(q trace.Request) error {
	s.requests++
	s.docs += len(q.Docs)
	s.sessions[q.Session] = struct{}{}
	return s.sets.Add(q)
}

func (s *summary) print(ctx context.Context, out io.Writer) error {
	overlap, err := s.sets.MeanOverlap(ctx, overlapSample)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%d requests, %d sessions, mean k %.2f, %d distinct blocks, overlap with the best earlier request %.2f\n",
		s.requests, len(s.sessions), float64(s.docs)/float64(s.requests), s.sets.Blocks(), overlap)
	return err
}
