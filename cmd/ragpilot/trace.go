package main

import (
	"cmp"
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
	return newGroup("trace", "Make and cut traces", "", newTraceGen(), newTraceCut())
}

// genFlags are the flags of trace gen. Values of opt count only if their flag was given.
type genFlags struct {
	trace, blocks, workload string
	overlap                 float64
	opt                     workload.Options
}

func newTraceGen() *cobra.Command {
	var f genFlags
	cmd := newCommand("gen --trace T --blocks B", "Make a synthetic trace and its blocks",
		`Gen writes a synthetic trace and its blocks. The same flags give the same bytes everywhere. Without --workload,
requests come from topics, as the flags describe; flags also change named workloads. A summary goes to
standard error.`, f.run)
	flags := cmd.Flags()
	flags.StringVar(&f.trace, "trace", "", "trace `FILE` to write (may end in .gz, - for standard output)")
	flags.StringVar(&f.blocks, "blocks", "", "blocks `FILE` to write (may end in .gz, - for standard output)")
	flags.StringVar(&f.workload, "workload", "topics", fmt.Sprintf("`NAME`: %v", workload.Names()))
	flags.Float64Var(&f.overlap, "overlap", 0, "mean `SHARE` of blocks that the request before on the topic or in the session had too;\n"+
		"0: no block is ever shared (default: left to chance)")
	registerWorkload(flags, &f.opt)
	return cmd
}

// registerWorkload adds the flags of a workload's options, whose values are the defaults.
func registerWorkload(flags *pflag.FlagSet, o *workload.Options) {
	flags.Uint64Var(&o.Seed, "seed", o.Seed, "`NUMBER` that all random choices follow from")
	flags.IntVar(&o.Contexts, "contexts", o.Contexts, "`NUMBER` of requests (default sessions x turns, or 1000)")
	flags.IntVar(&o.K, "k", o.K, "mean `NUMBER` of blocks of a request (default 15)")
	flags.IntVar(&o.KSpread, "k-spread", o.KSpread, "let k vary by up to `N` up and down")
	flags.IntVar(&o.Pool, "pool", o.Pool, "`NUMBER` of distinct blocks (default a third of contexts, at least 20 k for each tenant)")
	flags.Float64Var(&o.Zipf, "zipf", o.Zipf,
		"`EXPONENT` of the popularity of topics, one less than that of blocks within a topic (default 1)")
	flags.IntVar(&o.Topics, "topics", o.Topics, "`NUMBER` of topics (default pool / 2k, with --growing pool / 4k)")
	flags.Float64Var(&o.Drift, "drift", o.Drift, "`SHARE` of topics that become the most popular one for a time")
	flags.IntVar(&o.Bursts, "bursts", o.Bursts, "mean `LENGTH` of runs of requests on one topic")
	flags.IntVar(&o.Tenants, "tenants", o.Tenants, "`NUMBER` of tenants, which never share a block (default 1)")
	flags.IntVar(&o.Sessions, "sessions", o.Sessions, "`NUMBER` of sessions (default contexts / turns)")
	flags.IntVar(&o.Turns, "turns", o.Turns, "`NUMBER` of turns of each session (default contexts / sessions, or 1)")
	flags.IntVar(&o.BlockTokens, "block-tokens", o.BlockTokens, "mean `LENGTH` of a block in tokens (default 100)")
	flags.BoolVar(&o.EqualBlocks, "equal-blocks", o.EqualBlocks, "make all blocks of the same length")
	flags.BoolVar(&o.Growing, "growing", o.Growing, "let the blocks of a topic appear as time goes on")
}

// options returns the workload's options with those changed that were given as flags.
func (f *genFlags) options(flags *pflag.FlagSet) (workload.Options, error) {
	opt, err := workload.Named(f.workload)
	if err != nil {
		return opt, fmt.Errorf("--workload %w", err)
	}
	for _, x := range []limited{
		{"contexts", f.opt.Contexts, 1},
		{"k", f.opt.K, 1},
		{"pool", f.opt.Pool, 1},
		{"topics", f.opt.Topics, 1},
		{"tenants", f.opt.Tenants, 1},
		{"sessions", f.opt.Sessions, 1},
		{"turns", f.opt.Turns, 1},
		{"block-tokens", f.opt.BlockTokens, 1},
	} {
		if flags.Changed(x.flag) {
			err = cmp.Or(err, checkLimits(x))
		}
	}
	if flags.Changed("overlap") {
		opt.Overlap = &f.overlap
	}
	changed := pflag.NewFlagSet("", pflag.ContinueOnError)
	registerWorkload(changed, &opt)
	return opt, cmp.Or(err, copyGiven(changed, flags))
}

func (f *genFlags) run(cmd *cobra.Command) error {
	if err := required(cmd.Flags(), "trace", "blocks"); err != nil {
		return err
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

// cutFlags are the flags of trace cut.
type cutFlags struct {
	trace, out            string
	k, contexts, sessions int
}

func newTraceCut() *cobra.Command {
	var f cutFlags
	cmd := newCommand("cut --trace T --out F", "Keep the first documents, requests or sessions of a trace",
		`Cut writes a trace with fewer documents or requests: of each request its first --k documents, the first --contexts
requests, and of these the requests of the first --sessions sessions. A plan made with plan --k N belongs to the
trace that cut --k N writes.`, f.run)
	flags := cmd.Flags()
	flags.StringVar(&f.trace, "trace", "", "trace `FILE` (JSON lines, may end in .gz, - for standard input)")
	flags.StringVar(&f.out, "out", "", "`FILE` to write (may end in .gz, - for standard output)")
	flags.IntVar(&f.k, "k", 0, "keep the first `N` documents of each request (0: all)")
	flags.IntVar(&f.contexts, "contexts", 0, "keep the first `N` requests (0: all)")
	flags.IntVar(&f.sessions, "sessions", 0, "keep the first `N` sessions (0: all)")
	return cmd
}

func (f *cutFlags) run(cmd *cobra.Command) error {
	err := cmp.Or(required(cmd.Flags(), "trace", "out"),
		checkLimits(limited{"k", f.k, 0}, limited{"contexts", f.contexts, 0}, limited{"sessions", f.sessions, 0}))
	switch {
	case err != nil:
		return err
	case sameFile(f.trace, f.out):
		return fmt.Errorf("--out %s: is the trace that is read", f.out)
	case f.k == 0 && f.contexts == 0 && f.sessions == 0:
		return errors.New("--k, --contexts, --sessions: give at least one")
	}
	r, err := trace.Open(f.trace, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	return writeTrace(cmd.OutOrStdout(), f.out, func(w *trace.Writer) error { return f.cut(cmd.Context(), r, w) })
}

// cut copies what is kept, request by request.
func (f *cutFlags) cut(ctx context.Context, r *trace.Reader, w *trace.Writer) error {
	kept := map[string]bool{} // sessions
	read := 0
	for q, err := range r.All() {
		if err = errors.Join(ctx.Err(), err); err != nil {
			return err
		}
		if read++; f.contexts > 0 && read > f.contexts {
			return nil
		}
		if f.sessions > 0 && !kept[q.Session] && len(kept) == f.sessions {
			continue
		}
		kept[q.Session] = true
		if err := w.WriteRequest(q.First(f.k)); err != nil {
			return err
		}
	}
	return nil
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
