package membench

import (
	"os"
	"testing"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/internal/testkit/minilmtest"
)

// What five other users said, and 200 questions about it in other words. No constant was chosen on them. The log has what the cosine alone
// finds first, too.
func TestHeldOutMiniLM(t *testing.T) {
	testkit.NotUnderRace(t)
	if testing.Short() {
		t.Skip("takes 30 s")
	}
	model := embed.Cached(minilmtest.Open(t), 1<<10)
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
	t.Logf("of %d questions %.1f %% have their fact first (%.1f %% by the cosine alone), %.1f %% among the first five; %d have no stem in "+
		"common with it",
		s.Questions, 100*s.At1, 100*byCosine(t, data, model), 100*s.At5, s.Disjoint)
	if s.Questions != 200 || s.At1 < 0.75 || s.At5 < 0.95 {
		t.Errorf("%+v", s)
	}
}

// byCosine is the share of the questions that have their fact first if nothing but vectors is compared.
func byCosine(t *testing.T, data *Data, model embed.Embedder) float64 {
	t.Helper()
	found, asked := 0, 0
	for _, c := range data.Cases {
		texts := make([]string, len(c.Statements))
		for i, s := range c.Statements {
			texts[i] = s.Text
		}
		vectors, err := model.EmbedDocuments(t.Context(), texts)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range c.First {
			v, err := model.EmbedQuery(t.Context(), q.Text)
			if err != nil {
				t.Fatal(err)
			}
			first, best := 0, float32(-2)
			for i := range vectors {
				var cosine float32
				for j := range v {
					cosine += v[j] * vectors[i][j]
				}
				if cosine > best {
					first, best = i, cosine
				}
			}
			asked++
			if texts[first] == q.Needs[0] {
				found++
			}
		}
	}
	return float64(found) / float64(asked)
}
