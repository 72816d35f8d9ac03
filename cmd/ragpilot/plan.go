package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/lab/replay"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

func newPlan() *cobra.Command {
	var f traceFlags
	var policy, explain string
	var offline bool
	var concurrency int
	cmd := newCommand("plan --trace T --blocks B", "Plan a trace: one JSON line per request in execution order",
		`Plan reads recorded retrieval and writes how each request would be sent, one JSON line per request:
{"id","session","turn","docs","refs","echo","echo_text","hint"}

Online (the default) line i depends on the first i lines of the trace only, and is written before line i+1
is read. With --offline all requests are planned together and may run in another order.`, func(cmd *cobra.Command) error {
			set, err := f.settings(policy)
			if err != nil {
				return err
			}
			if set.Capacity, err = tokenCount("--capacity", f.capacity); err != nil {
				return err
			}
			blocks, err := trace.LoadBlocks(f.blocks)
			if err != nil {
				return err
			}
			planner, err := replay.NewPlanner(set, blocks)
			if err != nil {
				return fmt.Errorf("--policy: %w", err)
			}
			if concurrency < 1 || concurrency > 1 && !offline {
				return fmt.Errorf("--concurrency %d: want 1 or more, and more than 1 only with --offline", concurrency)
			}
			r, err := trace.Open(f.trace, blocks)
			if err != nil {
				return err
			}
			defer r.Close()
			out := cmd.OutOrStdout()
			var explanation *explained
			if cmd.Flags().Changed("explain") {
				explanation = &explained{id: explain, out: out}
				planner.Explain = explanation.plan
				out = io.Discard
			}
			w := trace.NewWriter(out)
			if offline {
				err = planOffline(cmd.Context(), planner, r, w, concurrency)
			} else {
				err = planOnline(cmd.Context(), planner, r, w)
			}
			return errors.Join(err, explanation.err())
		})
	flags := cmd.Flags()
	f.register(flags)
	flags.StringVar(&policy, "policy", contextpilot.DefaultPolicy, fmt.Sprintf("order `POLICY`: %v", contextpilot.PolicyNames()))
	flags.BoolVar(&offline, "offline", false, "plan all requests together")
	flags.IntVar(&concurrency, "concurrency", 1,
		"with --offline: `N` requests run side by side, so that none of them should share with another")
	flags.StringVar(&explain, "explain", "", "instead of plans, print why request `ID` is sent as it is")
	flags.StringVar(&f.capacity, "capacity", "unlimited", "index capacity in `TOKENS`")
	return cmd
}

// explained prints why one request is sent as it is.
type explained struct {
	id    string
	out   io.Writer
	found bool
	wrote error
}

func (e *explained) plan(q trace.Request, p *contextpilot.Plan) {
	if q.ID == e.id && !e.found {
		e.found = true
		_, e.wrote = io.WriteString(e.out, p.Explain())
	}
}

// err returns what went wrong; nil for nil.
func (e *explained) err() error {
	if e == nil {
		return nil
	}
	if !e.found {
		return fmt.Errorf("--explain %q: no such request in the trace", e.id)
	}
	return e.wrote
}

// planOnline writes each line before it reads the next.
func planOnline(ctx context.Context, planner *replay.Planner, r *trace.Reader, w *trace.Writer) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		q, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := w.WritePlan(planner.Plan(q)); err != nil {
			return fmt.Errorf("write plan: %w", err)
		}
		planner.Answered(q)
	}
}

// planOffline reads everything before it writes anything.
func planOffline(ctx context.Context, planner *replay.Planner, r *trace.Reader, w *trace.Writer, concurrency int) error {
	defer debug.SetGCPercent(debug.SetGCPercent(40)) // the batch is held whole: memory counts more than time
	var all []trace.Request
	for q, err := range r.All() {
		if err != nil {
			return err
		}
		all = append(all, q)
	}
	lines, err := planner.PlanAll(ctx, all, concurrency)
	if err != nil {
		return err
	}
	for _, line := range lines {
		if err := w.WritePlan(line); err != nil {
			return fmt.Errorf("write plan: %w", err)
		}
	}
	return nil
}

// tokenCount reads a number of tokens; 0 stands for unlimited.
func tokenCount(flag, value string) (int, error) {
	if value == "unlimited" {
		return 0, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s %q: want a number of tokens or unlimited", flag, value)
	}
	return n, nil
}
