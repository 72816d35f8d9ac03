package membench

import (
	"os"
	"testing"

	"github.com/ragpilot/ragpilot/embed/minilm"
	"github.com/ragpilot/ragpilot/internal/sharedtest"
)

// What five other users said, and 200 questions about it in other words. No constant was chosen on them. The cosine of MiniLM alone has 79.5 % of them first.
func TestHeldOutMiniLM(t *testing.T) {
	sharedtest.NotUnderRace(t)
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
	f, err := os.Open("testdata/heldout.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := ReadRows(f)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Recall(t.Context(), data, Target{Store: "inmem", Open: inMemory, Embedder: model, Name: "minilm"})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Stages[0]
	t.Logf("of %d questions %.1f %% have their fact first, %.1f %% among the first five; %d have no stem in common with it", s.Questions, 100*s.At1, 100*s.At5, s.Disjoint)
	if s.Questions != 200 || s.At1 < 0.75 || s.At5 < 0.95 {
		t.Errorf("%+v", s)
	}
}
