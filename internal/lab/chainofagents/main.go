// Command chainofagents answers questions with 15 readers, each of whom reads one of the 15 documents that were
// retrieved, and a manager who makes an answer of what they say. Documents come again and again with other questions:
// who reads which decides how much is computed. See README.md. The engines are simulators.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"text/tabwriter"

	"github.com/ragpilot/ragpilot/internal/lab/workload"
)

// readers is the number of agents that read.
const readers = 15

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run prints what each way of sharing the documents computes.
func run(ctx context.Context, out io.Writer) error {
	questions, blocks, err := workload.Generate(workload.Options{Seed: 1, Contexts: 200, K: readers, Zipf: 1, BlockTokens: 200})
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "who reads\tprompt tokens\tcomputed\tof which readers\tas affinity\t")
	affinity := 0
	for _, way := range []way{byAffinity, roundRobin, byRank} {
		chain, err := newChain(readers)
		if err != nil {
			return err
		}
		for _, q := range questions {
			if err := chain.answer(ctx, q, blocks, way); err != nil {
				return err
			}
		}
		if way == byAffinity {
			affinity = chain.computed
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%.2f×\t\n", way, chain.prompt, chain.computed, chain.reading,
			float64(chain.computed)/float64(affinity))
	}
	return table.Flush()
}
