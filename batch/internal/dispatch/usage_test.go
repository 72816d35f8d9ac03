package dispatch_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"

	"github.com/ragpilot/ragpilot/batch/internal/dispatch"
	"github.com/ragpilot/ragpilot/engines"
)

// TestUsageThatCannotBe: an engine may report any numbers. Negative ones must not lower what is spent, and huge ones must not overflow the
// sums over a job.
func TestUsageThatCannotBe(t *testing.T) {
	const most = math.MaxInt32
	for _, c := range []struct{ reported, kept engines.Usage }{
		{engines.Usage{PromptTokens: -5, OutputTokens: -1e9, CachedTokens: -3}, engines.Usage{}},
		{engines.Usage{PromptTokens: 10, OutputTokens: -1e9, CachedTokens: 30}, engines.Usage{PromptTokens: 10, CachedTokens: 10}},
		{
			engines.Usage{PromptTokens: math.MaxInt, OutputTokens: math.MaxInt, CachedTokens: math.MaxInt},
			engines.Usage{PromptTokens: most, OutputTokens: most, CachedTokens: most},
		},
	} {
		c.reported.CachedKnown, c.kept.CachedKnown = true, true
		synctest.Test(t, func(t *testing.T) {
			script := func(context.Context, engines.Request, int, func()) (engines.Response, error) {
				return engines.Response{Text: "yes", Usage: c.reported}, nil
			}
			s := newStore(t)
			prices := dispatch.Prices{Input: 1, Cached: 1, Output: 1}
			d := newDispatcher(t, dispatch.Config{Concurrency: 1, Prices: prices, MaxCost: 1e9}, &fake{script: script})
			if err := d.Run(t.Context(), numbered(2), s.add); err != nil {
				t.Fatal(err)
			}
			for i, a := range s.answers {
				if a.Usage != c.kept {
					t.Errorf("request %d: %+v, want %+v", i, a.Usage, c.kept)
				}
			}
			if got := d.Stats().Spent; got < 2*prices.Cost(c.kept) {
				t.Errorf("%g spent, want at least %g", got, 2*prices.Cost(c.kept))
			}
		})
	}
}
