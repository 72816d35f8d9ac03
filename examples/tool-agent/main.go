// Command tool-agent is a langchaingo agent whose tool searches notes, as they are found and with references to what earlier results show.
package main

import (
	"context"
	"embed"
	"fmt"
	"log"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/retriever/bleve"
)

//go:embed notes
var notes embed.FS

// search is the agent's tool: one for each run, because what it returns stays in the agent's messages until the run ends.
type search struct {
	index *bleve.Index
	pilot *contextpilot.Pilot  // nil: results are as they were found
	next  contextpilot.Request // its Prior and Behind: the results so far
}

func (*search) Name() string        { return "search" }
func (*search) Description() string { return "Finds notes on the canal lock." }
func (s *search) Call(ctx context.Context, query string) (result string, err error) {
	blocks, err := s.index.Search(ctx, query, 3)
	for _, b := range blocks {
		result += b.Text + "\n"
	}
	if s.pilot != nil {
		plan := s.pilot.Plan(contextpilot.Request{Query: query, Blocks: blocks, Prior: s.next.Prior, Behind: s.next.Behind})
		result, s.next.Behind = plan.Prompt(""), plan.End // the documents and a line on their order
		s.next.Prior = append(s.next.Prior, result)
	}
	fmt.Printf("  %d documents, %d as references: %s\n", len(blocks), strings.Count(result, "Please refer to ["), query)
	return result, err
}

func main() {
	for _, pilot := range []*contextpilot.Pilot{nil, must(contextpilot.New(contextpilot.Config{}))} {
		model := fake{Engine: sim.New(sim.Options{})}
		answer, used := run(model, &search{index: must(bleve.New(notes, bleve.Options{})), pilot: pilot}), model.Stats()
		fmt.Printf("%s With ragpilot: %t; prompt tokens: %d, of them cached: %d\n", answer, pilot != nil, used.PromptTokens, used.HitTokens)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
