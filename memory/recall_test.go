package memory_test

import (
	"os"
	"testing"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/embed/minilm"
	"github.com/ragpilot/ragpilot/memory"
)

// sentenceModel returns MiniLM, or skips the test where it is not.
func sentenceModel(t testing.TB) embed.Embedder {
	t.Helper()
	dir := os.Getenv("RAGPILOT_MINILM")
	if dir == "" {
		var err error
		if dir, err = minilm.DefaultDir(); err != nil {
			t.Skip(err)
		}
	}
	model, err := minilm.Open(dir)
	if err != nil {
		t.Skipf("no model (RAGPILOT_MINILM names its folder): %v", err)
	}
	return embed.Cached(model, 1<<10)
}

// Questions in other words find their facts: the shares of fifty that have the fact first, and among the first five.
func TestFiftyFoundMiniLM(t *testing.T) {
	store := newStore(t, memory.Config{Embedder: sentenceModel(t)})
	facts, questions := fifty(t)
	mustAdd(t, store, facts...)
	first, five := 0, 0
	for i, question := range questions {
		hits, err := store.Search(t.Context(), ana, question, 5, memory.SearchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for rank := range hits {
			if hits[rank].Memory.Text != facts[i] {
				continue
			}
			five++
			if rank == 0 {
				first++
			}
		}
	}
	t.Logf("of %d questions %d have their fact first, %d among the first five", len(questions), first, five)
	if n := len(questions); 100*first < 85*n || 100*five < 95*n {
		t.Errorf("%d and %d of %d, want 85 %% and 95 %%", first, five, n)
	}
}
