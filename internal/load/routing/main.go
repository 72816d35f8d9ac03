// Command routing compares ways to spread the requests of a trace over replicas, in virtual time on the engine model h100:
// what docs/routing.md shows. It is run by docs/load/routing.sh.
//
//	go run ./internal/load/routing TRACE BLOCKS RATE,RATE,… (conversations a second and replica)
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/load"
	"github.com/ragpilot/ragpilot/internal/replay"
	"github.com/ragpilot/ragpilot/internal/trace"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: routing TRACE BLOCKS RATE,RATE,…")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], strings.Split(os.Args[3], ",")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(traceFile, blocksFile string, rates []string) error {
	trc, blocks, err := trace.Load(traceFile, blocksFile)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "replicas\trate\tarm\tprefill tokens\tagainst joint\thit\tlargest share\tTTFT p50\tp95\t")
	for _, n := range []int{2, 4} {
		for _, text := range rates {
			rate, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return fmt.Errorf("rate %q: %w", text, err)
			}
			if err := point(w, trc, blocks, n, rate); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}

// point prints all arms at one load.
func point(w *tabwriter.Writer, trc []trace.Request, blocks *trace.Blocks, n int, rate float64) error {
	first := 0
	for _, arm := range load.Arms() {
		job := load.Job{
			Settings: replay.Settings{Policy: arm.Policy, Dedup: true, History: true}, Trace: trc, Blocks: blocks,
			Arrivals: load.Arrivals{Kind: load.Poisson, Rate: rate * float64(n)}, Seed: 1,
		}
		servers := make([]*sim.Server, n)
		for i := range servers {
			servers[i] = load.H100().Server(0, load.Replies(trc, 0))
		}
		run, err := job.SimulateFleet(context.Background(), servers, arm.Routing, engines.RouterOptions{})
		if err != nil {
			return fmt.Errorf("%s: %w", arm.Name, err)
		}
		if first == 0 {
			first = run.Prefill()
		}
		fmt.Fprintf(w, "%d\t%g\t%s\t%d\t%.2f\t%.3f\t%.2f\t%s\t%s\t\n", n, rate, arm.Name, run.Prefill(), float64(run.Prefill())/float64(first),
			run.HitRatio(), run.Imbalance(load.BalanceWindow), run.TTFT(.5).Round(time.Millisecond), run.TTFT(.95).Round(time.Millisecond))
	}
	return nil
}
