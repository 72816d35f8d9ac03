package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ragpilot/ragpilot/internal/lab/bounds"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

type boundsFlags struct {
	trace, blocks, history string
	k, pairs, groups       int
	json                   bool
}

func newBounds() *cobra.Command {
	var f boundsFlags
	cmd := newCommand("bounds --trace T --blocks B", "Print how much of a trace the best plan could save",
		`Bounds prints upper bounds on the share of document tokens that any plan can save with an unlimited cache. Online,
each request shares at most what it has in common with its nearest earlier request. Spread is the same for an
order in which requests that are alike come late. Offline adds up the maximum spanning tree of all
requests; groups also looks at triples and quadruples. Each figure includes the documents
that a session retrieved before, which references save. Any is the smallest: no plan saves more, in whatever
order the requests run.`, f.run)
	flags := cmd.Flags()
	flags.StringVar(&f.trace, "trace", "", "trace `FILE` (JSON lines, may end in .gz, - for standard input)")
	flags.StringVar(&f.blocks, "blocks", "", "blocks `FILE` (JSON lines, may end in .gz)")
	flags.StringVar(&f.history, "history", "full", "what each turn resends: `full|none`")
	flags.IntVar(&f.k, "k", 0, "use the first `N` documents of each request (0: all)")
	flags.IntVar(&f.pairs, "offline-limit", 20000, "leave offline and spread out if more than `N` requests can share a prefix")
	flags.IntVar(&f.groups, "groups-limit", 2000, "leave groups out if more than `N` requests can share a prefix")
	flags.BoolVar(&f.json, "json", false, "one JSON line instead of a table")
	return cmd
}

// boundsReport is what bounds prints. Bounds that were left out are nil.
type boundsReport struct {
	Requests   int      `json:"requests"`
	FirstTurns int      `json:"first_turns"`
	DocTokens  int      `json:"doc_tokens"`
	Repeated   float64  `json:"session_repeats"`
	Online     float64  `json:"online"`
	Spread     *float64 `json:"spread"`
	Offline    *float64 `json:"offline"`
	Groups     *float64 `json:"groups"`
	Any        float64  `json:"any"`
}

func (f *boundsFlags) run(cmd *cobra.Command) error {
	ctx, out, notes := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	p, requests, err := f.load(ctx)
	if err != nil {
		return err
	}
	r := boundsReport{Requests: requests, FirstTurns: p.Requests(), DocTokens: p.Tokens, Repeated: p.Share(0)}
	n, err := p.Nearest(ctx)
	if err != nil {
		return err
	}
	r.Online = p.Share(n)
	r.Any = r.Online
	for _, x := range []struct {
		name  string
		flag  string
		limit int
		bound func(context.Context) (int, error)
		to    **float64
	}{
		{"spread", "offline-limit", f.pairs, p.Spread, &r.Spread},
		{"offline", "offline-limit", f.pairs, p.SpanningTree, &r.Offline},
		{"groups", "groups-limit", f.groups, p.Groups, &r.Groups},
	} {
		if p.Requests() > x.limit {
			fmt.Fprintf(notes, "%s left out: %d requests can share a prefix, more than --%s %d\n", x.name, p.Requests(), x.flag, x.limit)
			continue
		}
		n, err := x.bound(ctx)
		if err != nil {
			return err
		}
		share := p.Share(n)
		*x.to = &share
		r.Any = min(r.Any, share)
	}
	if f.json {
		return json.NewEncoder(out).Encode(r)
	}
	return r.print(out)
}

// load reads what the flags name.
func (f *boundsFlags) load(ctx context.Context) (p *bounds.Problem, requests int, err error) {
	if err := checkTraceFiles(f.trace, f.blocks); err != nil {
		return nil, 0, err
	}
	if err := checkLimits(limited{"k", f.k, 0}, limited{"offline-limit", f.pairs, 0}, limited{"groups-limit", f.groups, 0}); err != nil {
		return nil, 0, err
	}
	history, err := oneOf("--history", f.history, "full", "none")
	if err != nil {
		return nil, 0, err
	}
	blocks, err := trace.LoadBlocks(f.blocks)
	if err != nil {
		return nil, 0, err
	}
	r, err := trace.Open(f.trace, blocks)
	if err != nil {
		return nil, 0, err
	}
	defer r.Close()
	p = bounds.New(blocks, history)
	for q, err := range r.All() {
		if err == nil {
			err = p.Add(q.First(f.k))
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, 0, err
		}
		requests++
	}
	return p, requests, nil
}

func (r boundsReport) print(out io.Writer) error {
	share := func(f *float64) string {
		if f == nil {
			return "left out"
		}
		return fmt.Sprintf("%.4f", *f)
	}
	_, err := fmt.Fprintf(out, "requests         %d, of which %d can share a prefix\n"+
		"document tokens  %d\n"+
		"session repeats  %.4f\n"+
		"online           %.4f\n"+
		"spread           %s\n"+
		"offline          %s\n"+
		"groups           %s\n"+
		"any              %.4f\n", r.Requests, r.FirstTurns, r.DocTokens, r.Repeated, r.Online, share(r.Spread), share(r.Offline),
		share(r.Groups), r.Any)
	return err
}
