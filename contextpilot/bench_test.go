package contextpilot_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// corpus is 20,000 blocks of about 800 bytes, with IDs and token counts.
func corpus() []contextpilot.Block {
	all := make([]contextpilot.Block, 20_000)
	for i := range all {
		text := strings.Repeat(fmt.Sprintf("Sentence %d of a passage. ", i), 800/26)
		all[i] = contextpilot.Block{ID: fmt.Sprintf("doc%d#0", i), Text: text, Tokens: 200}
	}
	return all
}

// contexts draws sets of k blocks by Zipf's law.
func contexts(n, k int) [][]contextpilot.Block { return testkit.Zipf(corpus(), n, k) }

// ids of benchmark requests, made beforehand.
func names(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(prefix, i)
	}
	return out
}

// loaded returns a pilot in its steady state: every further request drives out the oldest.
func loaded(b *testing.B, policy string, live int, sets [][]contextpilot.Block) *contextpilot.Pilot {
	p := newPilot(b, contextpilot.Config{Policy: policy, MaxRequests: live})
	for i := range live {
		p.Plan(contextpilot.Request{ID: fmt.Sprint("live", i), Blocks: sets[i%len(sets)]})
	}
	return p
}

func BenchmarkPlan(b *testing.B) {
	for _, k := range []int{5, 15, 100} {
		for _, live := range []int{1_000, 10_000} {
			sets := contexts(live+1000, k)
			for _, policy := range []string{"paper", "knowledge-tree", "frequency"} {
				b.Run(fmt.Sprintf("%s/k=%d/live=%d", policy, k, live), func(b *testing.B) {
					p := loaded(b, policy, live, sets)
					ids := names("new", 1<<16)
					b.ReportAllocs()
					i := 0
					for b.Loop() {
						p.Plan(contextpilot.Request{ID: ids[i%len(ids)], Blocks: sets[(live+i)%len(sets)]})
						i++
					}
				})
			}
		}
	}
}

func BenchmarkPlanParallel(b *testing.B) {
	const live, k = 1_000, 15
	sets := contexts(live+1000, k)
	for _, policy := range []string{"paper", "knowledge-tree"} {
		b.Run(policy, func(b *testing.B) {
			p := loaded(b, policy, live, sets)
			ids := names("new", 1<<16)
			var next atomic.Int64
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := int(next.Add(1))
					p.Plan(contextpilot.Request{ID: ids[i%len(ids)], Blocks: sets[(live+i)%len(sets)]})
				}
			})
		})
	}
}

// A ninth turn, with the eight before it resent; half of its blocks were shown.
func BenchmarkPlanDedup(b *testing.B) {
	sets := contexts(16, 10)
	p := newPilot(b, contextpilot.Config{})
	var prior []string
	var at contextpilot.Position
	size := 0
	for i := range 8 {
		plan := p.Plan(contextpilot.Request{ID: fmt.Sprint(i), Session: "s", Blocks: sets[i], Prior: prior, Behind: at})
		prior, at = append(prior, plan.Prompt("question"), strings.Repeat("answer ", 50)), plan.End
		size += len(prior[2*i]) + len(prior[2*i+1])
	}
	last := slices.Concat(sets[3][:5], sets[15][:5])
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		// the same request again replaces the one before
		plan := p.Plan(contextpilot.Request{ID: "last", Session: "s", Blocks: last, Prior: prior, Behind: at})
		if len(refs(plan)) == 0 || plan.Turn != 9 {
			b.Fatal(plan.Explain())
		}
	}
}

func BenchmarkPlanBatch(b *testing.B) {
	for _, n := range []int{500, 2_000} {
		b.Run(fmt.Sprintf("contextpilot/k=15/n=%d", n), func(b *testing.B) {
			var reqs []contextpilot.Request
			for i, set := range contexts(n, 15) {
				reqs = append(reqs, contextpilot.Request{ID: fmt.Sprint(i), Blocks: set})
			}
			b.ReportAllocs()
			for b.Loop() {
				p := newPilot(b, contextpilot.Config{Policy: "paper"})
				if _, err := p.PlanBatch(context.Background(), reqs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Planning the requests that go is not timed.
func BenchmarkObserveGone(b *testing.B) {
	for _, live := range []int{1_000, 10_000} {
		sets := contexts(live+1000, 15)
		for _, policy := range []string{"paper", "knowledge-tree"} {
			b.Run(fmt.Sprintf("%s/k=15/live=%d", policy, live), func(b *testing.B) {
				p := newPilot(b, contextpilot.Config{Policy: policy})
				for i := range live {
					p.Plan(contextpilot.Request{ID: fmt.Sprint(i), Blocks: sets[i]})
				}
				ids := names("", live)
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					if i%live == 0 && i > 0 { // all are gone
						b.StopTimer()
						for j := range live {
							p.Plan(contextpilot.Request{ID: ids[j], Blocks: sets[j]})
						}
						b.StartTimer()
					}
					p.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: ids[i%live]})
					i++
				}
			})
		}
	}
}
