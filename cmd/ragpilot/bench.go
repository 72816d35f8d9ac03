package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/lab/figures"
	"github.com/ragpilot/ragpilot/internal/lab/replay"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

func newBench() *cobra.Command {
	var traceFile, blocksFile string
	var policies []string
	var timed, k int
	var asJSON bool
	cmd := newCommand("bench --trace T --blocks B", "Measure what planning costs: time, allocations, memory",
		`Bench plans a trace, each request a first turn, and measures the last ones with the others live in the index.
All contexts but 3 × --timed are live; the first --timed of the rest are timed one by one, the second are
planned by one goroutine, the third by as many as there are processors.`, func(cmd *cobra.Command) error {
			if err := checkLimits(limited{"timed", timed, 1}, limited{"k", k, 0}); err != nil {
				return err
			}
			trc, blocks, err := trace.Load(traceFile, blocksFile)
			if err != nil {
				return err
			}
			reqs := replay.FirstTurns(trc, blocks, k)
			if len(reqs) <= 3*timed {
				return fmt.Errorf("--timed %d: the trace has %d requests, want more than 3 × %d", timed, len(reqs), timed)
			}
			var reports []replay.Cost
			for _, policy := range policies {
				if err := cmd.Context().Err(); err != nil {
					return err
				}
				r, err := replay.MeasureCost(contextpilot.Config{Policy: policy}, reqs, timed)
				if err != nil {
					return fmt.Errorf("--policy: %w", err)
				}
				reports = append(reports, r)
			}
			return writeCosts(cmd.OutOrStdout(), reports, asJSON)
		})
	flags := cmd.Flags()
	flags.StringVar(&traceFile, "trace", "", "trace `FILE`")
	flags.StringVar(&blocksFile, "blocks", "", "blocks `FILE`")
	flags.StringSliceVar(&policies, "policy", []string{contextpilot.DefaultPolicy},
		fmt.Sprintf("order `POLICIES`: %v", contextpilot.PolicyNames()))
	flags.IntVar(&timed, "timed", 1000, "`N` plans are timed")
	flags.IntVar(&k, "k", 0, "use the first `N` documents of each request (0: all)")
	flags.BoolVar(&asJSON, "json", false, "one JSON object for each policy")
	for _, name := range []string{"trace", "blocks"} {
		_ = cmd.MarkFlagRequired(name)
	}
	cmd.AddCommand(newBenchGPU(), newBenchLocal(), newBenchRoute(), newBenchServe(), newBenchUpstream())
	return cmd
}

func writeCosts(out io.Writer, reports []replay.Cost, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(out)
		for _, r := range reports {
			if err := enc.Encode(map[string]any{
				"policy": r.Policy, "live": r.Live, "plans": r.Plans, "p50_us": figures.Micros(r.P50), "p95_us": figures.Micros(r.P95),
				"p99_us": figures.Micros(r.P99), "max_us": figures.Micros(r.Max), "allocs": r.Allocs, "alloc_bytes": r.AllocBytes,
				"bytes_per_live": r.BytesPerLive, "plans_per_second": r.PerSecond, "plans_per_second_all_cores": r.PerSecondAll,
				"bounded": r.Bounded, "hit_blocks": r.HitBlocks,
			}); err != nil {
				return err
			}
		}
		return nil
	}
	w := figures.Table(out)
	fmt.Fprintln(w, "policy\tlive\tp50 µs\tp95 µs\tp99 µs\tmax µs\tallocs\tB allocated\tB/live\tplans/s\tplans/s, all cores\tbounded\thit "+
		"blocks\t")
	for _, r := range reports {
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.0f\t%.0f\t%.0f\t%.0f\t%d\t%.2f\t\n", r.Policy, r.Live, figures.Micros(r.P50),
			figures.Micros(r.P95),
			figures.Micros(r.P99), figures.Micros(r.Max), r.Allocs, r.AllocBytes, r.BytesPerLive, r.PerSecond, r.PerSecondAll, r.Bounded,
			r.HitBlocks)
	}
	return w.Flush()
}
