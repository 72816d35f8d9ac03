package replay_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/lab/replay"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

// sevens counts every text as seven tokens.
type sevens struct{}

func (sevens) Count(string) int { return 7 }

// Plans are made with the counts of the tokenizer that is given.
func TestTokenizer(t *testing.T) {
	trc, blocks := generate(t, 1, 20, 5)
	p, err := replay.NewPlanner(replay.Settings{Policy: "best", Tokenizer: sevens{}}, blocks)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	p.Explain = func(q trace.Request, plan *contextpilot.Plan) {
		for _, it := range plan.Items {
			seen++
			if n := plan.Block(it.Index).Tokens; n != 7 {
				t.Errorf("request %s: block of %d tokens", q.ID, n)
			}
		}
	}
	for _, q := range trc {
		p.Plan(q)
		p.Answered(q)
	}
	if seen == 0 {
		t.Error("no block was planned")
	}
}
