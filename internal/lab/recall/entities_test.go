package recall_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/memory"
)

// The boost by entities, which is on by default, does not lower recall: of the texts whose title a question names, found without
// their titles. RAGPILOT_RECALL_QUESTIONS is how many questions are asked; with few, a single one decides.
func TestEntitiesKeepRecall(t *testing.T) {
	if testing.Short() {
		t.Skip("searches thousands of memories")
	}
	testkit.NotUnderRace(t)
	folder := testkit.Shared(t, "traces", "multihop-2wiki")
	trc, blocks, err := trace.Load(folder+"/trace.jsonl", folder+"/blocks.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	asked := 240
	if s := os.Getenv("RAGPILOT_RECALL_QUESTIONS"); s != "" {
		if asked, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	questions := make([]string, 0, asked)
	for i := range min(asked, len(trc)) {
		questions = append(questions, trc[i*len(trc)/min(asked, len(trc))].Query)
	}
	docs, cases := ByTitle(blocks, questions)
	with, without := make([]float64, len(depths)), make([]float64, len(depths))
	for off, at := range map[bool][]float64{false: with, true: without} {
		store, err := memory.New(memory.NewInMemory(), memory.Config{Embedder: memory.Lexical, NoEntities: off})
		if err != nil {
			t.Fatal(err)
		}
		byText, messages := map[string]string{}, make([]memory.Message, len(docs))
		for i, d := range docs {
			byText[strings.TrimSpace(d.Text)], messages[i] = d.ID, memory.Message{Role: memory.User, Content: d.Text}
		}
		scope := memory.Scope{User: "ana"}
		if _, err := store.Add(t.Context(), scope, messages, memory.AddOptions{Extractor: memory.Everything{}}); err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			hits, err := store.Search(t.Context(), scope, c.Question, depths[len(depths)-1], memory.SearchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for i, k := range depths {
				found := 0
				for _, h := range hits[:min(k, len(hits))] {
					if c.Relevant[byText[h.Memory.Text]] {
						found++
					}
				}
				at[i] += 100 * float64(found) / float64(len(c.Relevant)) / float64(len(cases))
			}
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
	for i, k := range depths {
		t.Logf("recall at %d: %.1f %% with entities, %.1f %% without, %d questions", k, with[i], without[i], len(cases))
		if with[i] < without[i]-1e-9 {
			t.Errorf("recall at %d: entities lower it from %.1f to %.1f %%", k, without[i], with[i])
		}
	}
}

var depths = []int{1, 5, 10, 20}
