// Command chain-of-agents answers questions with 15 readers, each of whom reads one of the 15 documents that were
// retrieved, and a manager who makes an answer of what they say. Documents come again and again with other questions:
// who reads which decides how much is computed. See README.md. The engines are simulators.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"text/tabwriter"

	"github.com/ragpilot/ragpilot/internal/lab/workload"
)

// readers is the number of agents that read.
const readers = 15

func main() {
	questions, blocks, err := workload.Generate(workload.Options{Seed: 1, Contexts: 200, K: readers, Zipf: 1, BlockTokens: 200})
	if err != nil {
		log.Fatal(err)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "who reads\tprompt tokens\tcomputed\tof which readers\tas affinity\t")
	affinity := 0
	for _, way := range []way{byAffinity, roundRobin, byRank} {
		chain, err := newChain(readers)
		if err != nil {
			log.Fatal(err)
		}
		for _, q := range questions {
			if err := chain.answer(context.Background(), q, blocks, way); err != nil {
				log.Fatal(err)
			}
		}
		if way == byAffinity {
			affinity = chain.computed
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%.2f×\t\n", way, chain.prompt, chain.computed, chain.reading, float64(chain.computed)/float64(affinity))
	}
	if err := table.Flush(); err != nil {
		log.Fatal(err)
	}
}
