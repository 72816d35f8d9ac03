// Command batch-chain runs a langchaingo chain over each row of a file: rows with the same text are asked once, and after an interrupt
// the same call goes on.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"log"
	"os"

	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/prompts"

	"github.com/ragpilot/ragpilot/batch"
	"github.com/ragpilot/ragpilot/examples/internal/standin"
)

//go:embed orders.csv
var orders []byte

func main() {
	dir, err := os.MkdirTemp("", "batch-chain")
	if err == nil {
		err = os.WriteFile(dir+"/orders.csv", orders, 0o600)
	}
	if err == nil {
		err = run(context.Background(), dir+"/orders.csv", dir+"/answers.csv")
	}
	if err != nil {
		log.Fatal(err)
	}
	_ = os.RemoveAll(dir)
}

// run asks the chain about each row of a file, and writes the rows with their answers.
func run(ctx context.Context, in, out string) error {
	model := standin.NewModel(func(string) string { return "Repairs" })
	chain := chains.NewLLMChain(model, prompts.NewPromptTemplate("Sort this complaint into a department.\n{{.row}}", []string{"row"}))
	ask := batch.Func("chain", func(ctx context.Context, row string) (string, error) { return chains.Run(ctx, chain, row) })
	written, err := batch.AnswerFile(ctx, in, out, batch.Task{}, ask)
	if err != nil {
		return err
	}
	fmt.Printf("%d rows answered, %d failed\n", written.Rows-written.Failed, written.Failed)
	return nil
}
