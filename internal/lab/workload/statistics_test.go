package workload_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/lab/workload"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// inCommon returns how many blocks two requests share.
func inCommon(a, b trace.Request) int {
	n := 0
	for _, id := range a.Docs {
		if slices.Contains(b.Docs, id) {
			n++
		}
	}
	return n
}

func mean(values iter.Seq[float64]) float64 {
	sum, n := 0.0, 0
	for v := range values {
		sum += v
		n++
	}
	return sum / float64(n)
}

// between fails unless low <= got <= high.
func between(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	if !(got >= low && got <= high) {
		t.Errorf("%s is %.3f, want %.3f to %.3f", what, got, low, high)
	}
}

// TestJaccard: the workloads of the RAGCache++ paper have the similarities of consecutive queries that it reports (Sections
// 4.1, 4.4 and 4.7, Table 12).
func TestJaccard(t *testing.T) {
	tests := []struct {
		name    string
		overlap float64
		want    float64
	}{
		{"ragcachepp", 0.6, 0.52},
		{"ragcachepp-small", 0, 0.386},
		{"ragcachepp-small", 0.2, 0.386},
		{"ragcachepp-small", 0.4, 0.417},
		{"ragcachepp-small", 0.6, 0.526},
		{"ragcachepp-small", 0.8, 0.661},
		{"ragcachepp-disjoint", -1, 0},
		{"ragcachepp-geo", -1, 0.17},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %v", tt.name, tt.overlap), func(t *testing.T) {
			requests, _ := generate(t, named(t, tt.name, func(o *workload.Options) {
				o.Contexts = 4000
				if tt.overlap >= 0 {
					o.Overlap = &tt.overlap
				}
			}))
			got := mean(func(yield func(float64) bool) {
				for i := 1; i < len(requests); i++ {
					both := inCommon(requests[i], requests[i-1])
					if !yield(float64(both) / float64(2*5-both)) {
						return
					}
				}
			})
			between(t, "Jaccard similarity", got, tt.want-0.03, tt.want+0.015)
		})
	}
}

// TestOverlap: a request shares what was asked for with the one before it on its topic.
func TestOverlap(t *testing.T) {
	for _, overlap := range []float64{0.1, 0.33, 0.5, 0.9, 1} {
		requests, _ := generate(t, workload.Options{Contexts: 2000, Topics: 1, Pool: 2000, K: 10, Overlap: &overlap, BlockTokens: 1})
		got := mean(func(yield func(float64) bool) {
			for i := 1; i < len(requests); i++ {
				if !yield(float64(inCommon(requests[i], requests[i-1])) / 10) {
					return
				}
			}
		})
		between(t, fmt.Sprintf("overlap %v", overlap), got, overlap-0.02, overlap+0.02)
	}
}

// TestTurns: later turns retrieve some blocks of their session again.
func TestTurns(t *testing.T) {
	requests, _ := generate(t, workload.Options{Sessions: 400, Turns: 4, K: 10, Pool: 3000, Zipf: 1, BlockTokens: 1})
	shown := map[string]trace.Request{}
	open, most := map[string]bool{}, 0
	got := mean(func(yield func(float64) bool) {
		for _, q := range requests {
			before := shown[q.Session]
			if q.Turn > 1 && !yield(float64(inCommon(q, before))/10) {
				return
			}
			before.Docs = append(before.Docs, q.Docs...)
			shown[q.Session] = before
			open[q.Session] = true
			if most = max(most, len(open)); q.Turn == 4 {
				delete(open, q.Session)
			}
		}
	})
	between(t, "share of blocks that a session saw before", got, workload.TurnOverlap-0.03, workload.TurnOverlap+0.03)
	between(t, "number of sessions at a time", float64(most), 8, 16)
}

// TestRank: blocks in the middle of a topic stand in front as a rule.
func TestRank(t *testing.T) {
	requests, _ := generate(t, workload.Options{Contexts: 2000, Topics: 1, Pool: 60, K: 10, BlockTokens: 1})
	uses, places := map[string]float64{}, map[string]float64{}
	for _, q := range requests {
		for place, id := range q.Docs {
			uses[id]++
			places[id] += float64(place)
		}
	}
	var often, seldom string
	for id, n := range uses {
		if often == "" || n > uses[often] {
			often = id
		}
		if seldom == "" || n < uses[seldom] && n > 20 {
			seldom = id
		}
	}
	a, b := places[often]/uses[often], places[seldom]/uses[seldom]
	between(t, "mean place of the most central block", a, 0.2, 2)
	between(t, "mean place of a borderline block", b, 5, 8.5)
}

// topicOf distinguishes topics in a trace that shares no blocks between them, by any of a request's blocks.
func topicOf(requests []trace.Request) []int {
	group := map[string]int{}
	out := make([]int, len(requests))
	for i, q := range requests {
		out[i] = i
		for _, id := range q.Docs {
			if g, ok := group[id]; ok {
				out[i] = g
			}
		}
		for _, id := range q.Docs {
			group[id] = out[i]
		}
	}
	return out
}

func TestBursts(t *testing.T) {
	// Growing topics have no blocks in common.
	requests, _ := generate(t, workload.Options{Contexts: 3000, K: 10, Pool: 2000, Topics: 50, Bursts: 8, Growing: true, BlockTokens: 1})
	runs := 0
	topics := topicOf(requests)
	for i := range topics {
		if i == 0 || topics[i] != topics[i-1] {
			runs++
		}
	}
	between(t, "mean length of a run", 3000/float64(runs), 6.5, 9.5)
}

func TestDrift(t *testing.T) {
	hottest := func(drift float64) (first, last int) {
		requests, _ := generate(t,
			workload.Options{Contexts: 4000, K: 10, Pool: 2000, Topics: 50, Zipf: 1.5, Drift: drift, Growing: true, BlockTokens: 1})
		topics := topicOf(requests)
		most := func(list []int) int {
			n := map[int]int{}
			best := list[0]
			for _, x := range list {
				if n[x]++; n[x] > n[best] {
					best = x
				}
			}
			return best
		}
		return most(topics[:500]), most(topics[3500:])
	}
	if a, b := hottest(0); a != b {
		t.Errorf("without drift the most popular topic went from %d to %d", a, b)
	}
	if a, b := hottest(0.5); a == b {
		t.Errorf("with drift topic %d stayed the most popular", a)
	}
}

func TestBlocks(t *testing.T) {
	count := func(opt workload.Options) iter.Seq[float64] {
		return func(yield func(float64) bool) {
			_, blocks := generate(t, opt)
			for b := range blocks.All() {
				if !yield(float64(tokens.Count(b.Text))) {
					return
				}
			}
		}
	}
	opt := workload.Options{Contexts: 1, Pool: 4000, BlockTokens: 60}
	between(t, "mean length", mean(count(opt)), 57, 63)
	lengths := slices.Sorted(count(opt))
	between(t, "shortest", lengths[0], 60/8, 15)
	between(t, "longest", lengths[len(lengths)-1], 150, 360)
	opt.EqualBlocks = true
	for _, n := range []int{1, 2, 7, 60} {
		opt.BlockTokens = n
		lengths := slices.Sorted(count(opt))
		between(t, "shortest of equal ones", lengths[0], float64(n), float64(n))
		between(t, "longest of equal ones", lengths[len(lengths)-1], float64(n), float64(n))
	}
}
