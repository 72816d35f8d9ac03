package replay_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/lab/workload"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// price is what the default costs beside retrieval order and profile most-reuse. Tokens of echoes count as computed.
type price struct {
	harmed, requests       int
	more, less             int // tokens that requests compute more, and less, than in retrieval order
	byDefault, most, plain float64
}

func (p *price) add(t *testing.T, trc []trace.Request, blocks *trace.Blocks) {
	t.Helper()
	without := send(t, planned(t, plain, false, trc, blocks), 0, trc, blocks)
	near := send(t, planned(t, byDefault, false, trc, blocks), 0, trc, blocks)
	most := send(t, planned(t, "best", false, trc, blocks), 0, trc, blocks)
	p.byDefault, p.most, p.plain = p.byDefault+near.saved, p.most+most.saved, p.plain+without.saved
	for id := range without.prompt {
		p.requests++
		if d := near.computed(id) - without.computed(id); d < 0 {
			p.less -= d
		} else if d > sim.DefaultBlockTokens {
			p.harmed++
			p.more += d
		}
	}
}

// check wants at most these shares of harmed requests, and of what they cost of the savings, and so many points of saved tokens.
func (p *price) check(t *testing.T, runs, harmed, cost, points float64) {
	t.Helper()
	t.Logf("saved %.1f %%, most-reuse %.1f, retrieval order %.1f; %.2f %% of the requests compute more, by %.2f %% of the savings",
		100*p.byDefault/runs, 100*p.most/runs, 100*p.plain/runs, 100*float64(p.harmed)/float64(p.requests), 100*float64(p.more)/float64(p.less))
	if float64(p.harmed) > harmed*float64(p.requests) || float64(p.more) > cost*float64(p.less) || 100*(p.most-p.byDefault)/runs > points {
		t.Errorf("want at most %.1f %%, %.1f %%, and %.1f points less saved than with most-reuse", 100*harmed, 100*cost, points)
	}
}

// With few blocks, where retrieval order reuses much by itself, few requests compute more than without ragpilot; ADR 30 says why not fewer.
func TestDefaultOfFewBlocks(t *testing.T) {
	testkit.NotUnderRace(t)
	for k, cost := range map[int]float64{3: 0.08, 5: 0.04} {
		var p price
		for seed := range uint64(4) {
			trc, blocks, err := workload.Generate(workload.Options{Seed: 40 + seed, Contexts: 600, K: k, Pool: 900, Zipf: 1})
			if err != nil {
				t.Fatal(err)
			}
			p.add(t, trc, blocks)
		}
		p.check(t, 4, 0.05, cost, 1.5)
	}
}

// With more blocks the default costs little reuse.
func TestDefaultOnOpenTraces(t *testing.T) {
	testkit.NotUnderRace(t)
	for _, name := range testkit.Traces() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trc, blocks := openTrace(t, name)
			var p price
			p.add(t, trc, blocks)
			p.check(t, 1, 0.04, 0.02, 1)
		})
	}
}
