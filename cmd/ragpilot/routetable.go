package main

import (
	"fmt"
	"io"

	"github.com/ragpilot/ragpilot/internal/lab/load"
)

func printRoutes(out io.Writer, engine string, points []load.RoutePoint) error {
	p := points[0]
	fmt.Fprintf(out, "engines: %s\n", engine)
	fmt.Fprintf(out, "%d requests, seeds: %d%s; times in ms; share: largest of one replica of the tokens computed for %d requests, × mean\n",
		p.Requests, p.Seeds, plusMinus(p.Seeds), min(load.BalanceWindow, p.Requests))
	w := aligned(out)
	fmt.Fprintln(w, title("replicas", "arrivals", "arm", "computed", "hit ratio", "share", "TTFT p50", "p95", "of "+p.Against))
	for _, p := range points {
		computed, hit, balance, factor := "?", "?", "?", "?"
		if p.HitKnown {
			computed, hit = p.Prefill.Show("%.0f"), p.Hit.Show("%.3f")
			balance, factor = fmt.Sprintf("%.2f", p.Imbalance.Max), p.VsFirst.Show("%.3f")
		}
		fmt.Fprintln(w, title(fmt.Sprint(p.Replicas), p.Arrivals, p.Arm, computed, hit, balance, p.TTFT50.Show("%.0f"), p.TTFT95.Show("%.0f"), factor))
	}
	return w.Flush()
}
