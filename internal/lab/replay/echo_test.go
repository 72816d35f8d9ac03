package replay_test

import (
	"context"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/replay"
)

// What echoes add to prompts is what a run counts as echoes, and what they save less.
func TestEchoesAreCounted(t *testing.T) {
	trc, blocks := generate(t, 3, 200, 8)
	results := map[contextpilot.Top]replay.Result{}
	for _, top := range []contextpilot.Top{contextpilot.TopAnywhere, contextpilot.TopEchoes} {
		for _, limit := range []int{contextpilot.EchoWhole, 12} {
			job := replay.Job{
				Settings: replay.Settings{
					Policy: "sorted", Top: top, EchoTokens: limit, Notes: contextpilot.Notes{Hint: contextpilot.HintNone},
				},
				Engine: sim.New(sim.Options{}), Exact: true,
			}
			res, err := replay.Run(context.Background(), job, trc, blocks)
			if err != nil {
				t.Fatal(err)
			}
			if top == contextpilot.TopAnywhere {
				results[top] = res
				continue
			}
			plain := results[contextpilot.TopAnywhere]
			if more := res.PromptTokens - plain.PromptTokens; more == 0 || res.EchoTokens != more {
				t.Errorf("%d tokens of echoes, prompts have %d more", res.EchoTokens, more)
			}
			if res.DocTokens != plain.DocTokens || res.DocSaved() >= plain.DocSaved() {
				t.Errorf("%d tokens of documents, %d without echoes; saved %.3f and %.3f", res.DocTokens, plain.DocTokens, res.DocSaved(),
					plain.DocSaved())
			}
		}
	}
}
