package offline_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/prompt/offline"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// firstTurns gives the sets of the sessions' first turns and the tokens of the blocks as rendered.
func firstTurns(t *testing.T, name string) (sets [][]int32, weight []int32, total int64) {
	t.Helper()
	dir := testkit.Shared(t, "traces", name)
	trc, blocks, err := trace.Load(filepath.Join(dir, "trace.jsonl"), filepath.Join(dir, "blocks.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	number := map[string]int32{}
	seen := map[string]bool{}
	for _, q := range trc {
		if seen[q.Session] {
			continue
		}
		seen[q.Session] = true
		set := make([]int32, len(q.Docs))
		for i, id := range q.Docs {
			d, ok := number[id]
			if !ok {
				text, _ := blocks.Text(id)
				d = int32(len(weight))
				number[id] = d
				weight = append(weight, int32(tokens.Count(trace.Doc(id, text))))
			}
			set[i] = d
			total += int64(weight[d])
		}
		sets = append(sets, set)
	}
	return sets, weight, total
}

// TestOpenTraces: the default saves as much on the open traces as was measured, less a margin for other seeds.
func TestOpenTraces(t *testing.T) {
	testkit.NotUnderRace(t)
	want := map[string]float64{"multihop-2wiki": 57.9, "memory-locomo-k100": 75.3, "chat-mtragun": 21.2}
	for _, name := range testkit.Traces() {
		t.Run(name, func(t *testing.T) {
			sets, weight, total := firstTurns(t, name)
			for _, c := range []struct {
				name string
				o    offline.Options
			}{{"no search", offline.Options{Effort: -1}}, {"default", offline.Options{}}, {"seed 1", offline.Options{Seed: 1}}} {
				began := time.Now()
				r := plan(t, sets, weight, c.o)
				if err := valid(sets, weight, r); err != nil {
					t.Fatal(err)
				}
				got := 100 * float64(r.Saved) / float64(total)
				t.Logf("%d requests, %s: %.2f %% saved in %v", len(sets), c.name, got, time.Since(began).Round(time.Millisecond))
				if c.o.Effort == 0 && got < want[name] {
					t.Errorf("%s: saved %.2f %%, want %.1f", c.name, got, want[name])
				}
			}
		})
	}
}
