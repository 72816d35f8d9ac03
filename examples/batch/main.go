// Command batch asks about each row of a table, in an order in which prompts share the longest prefixes, and prints the table with the
// answers. The engine is a simulator.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/ragpilot/ragpilot/batch"
	"github.com/ragpilot/ragpilot/batch/table"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
)

//go:embed orders.csv
var orders []byte

// question is asked of each row. Lines with columns may change places between the first line and the last.
const question = `Which department should handle this complaint? Answer with one word.
Product: {{product}}
City: {{city}}
Complaint: {{complaint}}
Department:`

func main() {
	dir, err := os.MkdirTemp("", "batch")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	in, out := filepath.Join(dir, "orders.csv"), filepath.Join(dir, "answers.csv")
	if err := os.WriteFile(in, orders, 0o600); err != nil {
		log.Fatal(err)
	}
	if err := run(context.Background(), dir, in, out); err != nil {
		log.Fatal(err)
	}
	answers, err := os.ReadFile(out)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", answers)
}

func run(ctx context.Context, dir, in, out string) error {
	t, err := table.Open(ctx, in, table.Options{})
	if err != nil {
		return err
	}
	defer t.Close()
	jobs, err := batch.Open(ctx, filepath.Join(dir, "jobs.db"), batch.OpenOptions{}) // or a PostgreSQL URL, for workers elsewhere
	if err != nil {
		return err
	}
	defer jobs.Close()
	engine := sim.New(sim.Options{Reply: func(engines.Request) string { return "Repairs" }})
	job, _, err := jobs.Run(ctx, "complaints", t, batch.Task{Prompt: batch.Prompt{Text: question}}, batch.RunOptions{
		Add: batch.AddOptions{Report: func(r batch.Report) error {
			fmt.Printf("%d rows, %d requests\n", r.Rows, r.Requests)
			return nil
		}},
		Work:  batch.WorkOptions{Replicas: []batch.Replica{{Name: "sim", Engine: engine}}, Concurrency: 1},
		Write: batch.WriteOptions{Out: out, Column: "department"},
	})
	if err != nil {
		return err
	}
	fmt.Printf("engine: %s, %d of %d prompt tokens from the cache\n\n", engine.Name(), job.CachedTokens, job.PromptTokens)
	return nil
}
