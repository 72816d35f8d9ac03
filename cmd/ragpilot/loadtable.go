package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/load"
)

func printPoints(out io.Writer, engine string, points []load.Point) error {
	p := points[0]
	fmt.Fprintf(out, "engine: %s\n", engine)
	fmt.Fprintf(out, "%d requests, seeds: %d%s; times in ms\n", p.Requests, p.Seeds, plusMinus(p.Seeds))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, title("arrivals", "policy", "TTFT p50", "p95", "p99", "latency p50", "p95", "tokens/s", "of "+p.Against, "hit ratio"))
	for _, p := range points {
		hit := "?"
		if p.HitKnown {
			hit = p.Hit.Show("%.3f")
		}
		fmt.Fprintln(w, title(p.Arrivals, p.Policy, p.TTFT50.Show("%.0f"), p.TTFT95.Show("%.0f"), p.TTFT99.Show("%.0f"),
			p.Total50.Show("%.0f"), p.Total95.Show("%.0f"), p.Output.Show("%.1f"), p.OutputVs.Show("%.3f"), hit))
	}
	if err := w.Flush(); err != nil || !p.HitKnown {
		return err
	}
	fmt.Fprintf(out, "\nhit ratio of each tenth of the requests\n")
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, p := range points {
		fmt.Fprintf(w, "%s\t%s\t", p.Arrivals, p.Policy)
		for _, h := range p.Progress {
			fmt.Fprintf(w, "%.3f\t", h.Mean)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

func printSustained(out io.Writer, engine string, slo time.Duration, found []load.Sustained) error {
	fmt.Fprintf(out, "engine: %s\n", engine)
	seeds := len(found[0].Rates)
	fmt.Fprintf(out, "largest rate at which the 95th percentile of TTFT is at most %v, arrivals %s, seeds: %d%s\n", slo, found[0].Arrivals, seeds, plusMinus(seeds))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, title("policy", "conversations/s", "of "+found[0].Policy))
	for _, s := range found {
		fmt.Fprintln(w, title(s.Policy, s.Rate.Show("%.3f"), s.VsFirst.Show("%.3f")))
	}
	return w.Flush()
}

func plusMinus(seeds int) string {
	if seeds < 2 {
		return ""
	}
	return ", mean ± 95 % t-interval"
}
