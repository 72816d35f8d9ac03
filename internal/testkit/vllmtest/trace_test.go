//go:build unix

package vllmtest

import (
	"cmp"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// blockTokens is what blocks of the trace are cut to.
const blockTokens = 110

// recorded returns the first requests of the trace multihop-2wiki, with their blocks cut.
func recorded(t *testing.T, requests, longest int) []contextpilot.Request {
	t.Helper()
	const name = "multihop-2wiki"
	trc, blocks, err := trace.Load(testkit.Shared(t, "traces", name, "trace.jsonl"), testkit.Shared(t, "traces", name, "blocks.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if len(trc) < requests {
		t.Fatalf("the trace has %d requests, want %d", len(trc), requests)
	}
	out := make([]contextpilot.Request, requests)
	for i, q := range trc[:requests] {
		out[i] = contextpilot.Request{ID: "req-" + q.ID, Query: trace.Question(q.Query)}
		for _, id := range q.Docs {
			text, _ := blocks.Text(id)
			out[i].Blocks = append(out[i].Blocks, contextpilot.Block{ID: id, Text: cut(text, longest)})
		}
	}
	return out
}

// cut returns the first n tokens of a text.
func cut(text string, n int) string {
	for at := range tokens.Pieces(text) {
		if n == 0 {
			return text[:at]
		}
		n--
	}
	return text
}

// wanted returns for each request how many of its blocks another request wants too, and how often these are wanted in all.
func wanted(requests []contextpilot.Request) (blocks, times []int) {
	uses := map[string]int{}
	for _, q := range requests {
		for _, b := range q.Blocks {
			uses[b.ID]++
		}
	}
	for _, q := range requests {
		n, sum := 0, 0
		for _, b := range q.Blocks {
			if uses[b.ID] > 1 {
				n++
			}
			sum += uses[b.ID] - 1
		}
		blocks, times = append(blocks, n), append(times, sum)
	}
	return blocks, times
}

// topRequests is how many requests the best of an arm are.
const topRequests = 40

// top returns the requests, of those named, that have most of something; the earlier ones where they have the same.
func top(of []int, most ...[]int) []int {
	list := slices.Clone(of)
	slices.SortStableFunc(list, func(a, b int) int {
		for _, m := range most {
			if c := cmp.Compare(m[b], m[a]); c != 0 {
				return c
			}
		}
		return 0
	})
	return list[:min(topRequests, len(list))]
}
