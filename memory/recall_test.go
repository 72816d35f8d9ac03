package memory_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/internal/testkit/minilmtest"
	"github.com/ragpilot/ragpilot/memory"
)

// sentenceModel returns MiniLM, or skips the test where it is not.
func sentenceModel(t testing.TB) embed.Embedder {
	t.Helper()
	return embed.Cached(minilmtest.Open(t), 1<<10)
}

// Questions in other words find their facts: the shares of fifty that have the fact first, and among the first five.
func TestFiftyFoundMiniLM(t *testing.T) {
	testkit.NotUnderRace(t)
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

// late is a fake embedder that is not ready at first. Facts are as far from every question as what has nothing to do with it.
type late struct{ ready bool }

func (l *late) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		v, err := l.EmbedQuery(ctx, text)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (l *late) EmbedQuery(_ context.Context, text string) ([]float32, error) {
	switch {
	case !l.ready:
		return nil, embed.ErrNotReady
	case strings.Contains(text, "Fact"):
		return []float32{0.3, 0.954}, nil
	}
	return []float32{1, 0}, nil
}

// A memory that has no vector yet is found by its words among others that have.
func TestFoundBeforeItsVector(t *testing.T) {
	embedder := &late{}
	store := newStore(t, memory.Config{Embedder: embedder})
	mustAdd(t, store, "My passport expires in May.")
	embedder.ready = true
	for i := range 30 {
		mustAdd(t, store, fmt.Sprintf("Fact %s is unrelated.", word(i)))
	}
	for _, threshold := range []float64{0, 0.1} {
		hits, err := store.Search(t.Context(), ana, "When does my passport expire?", 20, memory.SearchOptions{Threshold: threshold})
		if err != nil {
			t.Fatal(err)
		}
		if hits[0].Memory.Text != "My passport expires in May." {
			t.Errorf("threshold %v: %+v is first", threshold, hits[0])
		}
	}
}
