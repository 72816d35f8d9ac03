package membench

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/sqlite"
)

func inMemory(context.Context) (memory.Backend, error) { return memory.NewInMemory(), nil }

func recall(t *testing.T, data *Data, target Target) Recalled {
	t.Helper()
	target.Embedder, target.Name = memory.Lexical, "lexical"
	r, err := Recall(t.Context(), data, target)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The bars of search without a model, on facts whose words the questions do not repeat in half of the cases. A seed more or
// less easy than others does not decide: five are taken together.
func TestLexicalFloors(t *testing.T) {
	var at1, at5 float64
	const seeds = 5
	for seed := range uint64(seeds) {
		r := recall(t, generate(t, Options{Seed: seed, Users: 2}), Target{Store: "inmem", Open: inMemory})
		at1, at5 = at1+r.Stages[0].At1/seeds, at5+r.Stages[0].At5/seeds
		for _, s := range r.Stages {
			if s.Deleted != 0 || s.Foreign != 0 {
				t.Errorf("seed %d, %s: %d hits were deleted and %d are others'", seed, s.Name, s.Deleted, s.Foreign)
			}
		}
	}
	if at1 < 0.30 || at5 < 0.42 {
		t.Errorf("recall@1 = %.3f, @5 = %.3f, want at least 0.30 and 0.42", at1, at5)
	}
}

// What is found depends on the texts and not on where they are kept.
func TestStoresAgree(t *testing.T) {
	data := generate(t, Options{Seed: 3, Users: 2, Turns: 20})
	a := recall(t, data, Target{Store: "inmem", Open: inMemory})
	b := recall(t, data, Target{Store: "sqlite", Open: func(ctx context.Context) (memory.Backend, error) {
		return sqlite.Open(ctx, filepath.Join(t.TempDir(), "m.db"), sqlite.Options{Relaxed: true})
	}})
	for i := range a.Stages {
		if math.Abs(a.Stages[i].At5-b.Stages[i].At5) > 0.01 {
			t.Errorf("%+v in memory, %+v in SQLite", a.Stages[i], b.Stages[i])
		}
	}
	if len(a.Stages) != 3 || a.Add.Count != 2*(factsEach+othersEach+mattersEach+updatesEach) ||
		a.Search.Count != 3*(len(data.Cases[0].First)+len(data.Cases[1].First)) {
		t.Errorf("%d stages, %d adds, %d searches", len(a.Stages), a.Add.Count, a.Search.Count)
	}
}

// A tiny set whose figures can be worked out by hand: the old text has more of the question's words than the new one.
func TestRecallCounts(t *testing.T) {
	data := &Data{Cases: []Case{
		{
			User:       "a",
			Statements: []Said{{Text: "The gate code is 12"}, {Text: "Bees make honey"}},
			First:      []Question{{Text: "gate code", Needs: []string{"The gate code is 12"}}, {Text: "zyzzyva", Needs: []string{"nowhere"}}},
			Updates:    []string{"The gate code is 99 gate code"},
			Deleted:    []string{"Bees make honey"},
			Then: []Question{
				{Text: "gate code", Needs: []string{"The gate code is 99 gate code"}, Old: "The gate code is 12"},
				{Text: "Bees make honey"},
				{Text: "gate", Needs: []string{"nowhere", "The gate code is 12"}},
			},
		},
		{User: "b", Statements: []Said{{Text: "Bees make wax"}}},
	}}
	r := recall(t, data, Target{Store: "inmem", Open: inMemory})
	if len(r.Stages) != 2 {
		t.Fatalf("%+v", r.Stages)
	}
	if s := r.Stages[0]; s.Questions != 2 || s.At1 != 0.5 || s.Disjoint != 1 || s.DisjointAt5 != 0 || s.Updated != 0 {
		t.Errorf("first: %+v", s)
	}
	s := r.Stages[1]
	if s.Questions != 2 || s.Updated != 1 || s.NewestFirst != 1 || s.At5 != 0.75 || s.Disjoint != 0 || s.Deleted != 0 || s.Foreign != 0 {
		t.Errorf("then: %+v", s)
	}
}

func prompts(t *testing.T, data *Data, opts PromptOptions) Prompted {
	t.Helper()
	opts.Embedder, opts.Name = memory.Lexical, "lexical"
	p, err := Prompts(t.Context(), data, opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPrompts(t *testing.T) {
	p := prompts(t, generate(t, Options{Seed: 1, Users: 2, Turns: 30}), PromptOptions{K: 10, Cache: 2000})
	if len(p.Arms) != 4 {
		t.Fatalf("%+v", p)
	}
	by := map[string]Arm{}
	for _, a := range p.Arms {
		by[a.Name] = a
		if a.Turns != 60 || a.Asking == 0 || a.Computed > a.Prompt || a.Computed > a.ComputedSmall || a.Computed <= 0 {
			t.Errorf("%+v", a)
		}
	}
	if by[ArmWhole].Held != 1 || by[ArmNone].Held != 0 {
		t.Errorf("held: whole %v, none %v", by[ArmWhole].Held, by[ArmNone].Held)
	}
	if by[ArmOurs].Held < 0.2 || by[ArmTopK].Held < 0.2 {
		t.Errorf("held: ours %v, top-k %v", by[ArmOurs].Held, by[ArmTopK].Held)
	}
	if by[ArmWhole].Prompt < 2*by[ArmTopK].Prompt || by[ArmWhole].ComputedSmall < 2*by[ArmWhole].Computed {
		t.Errorf("whole history %+v, top-k %+v", by[ArmWhole], by[ArmTopK])
	}
}

// reader is a fake model that answers with the prompt, so that an answer is right where the prompt has the value.
type reader struct{ limit int }

func (r reader) Context() int          { return r.limit }
func (r reader) Count(text string) int { return tokenizer{}.Count(text) }

func TestAnswers(t *testing.T) {
	data := generate(t, Options{Seed: 1, Users: 1, Turns: 30})
	model := struct {
		*sim.Engine
		reader
	}{sim.New(sim.Options{}), reader{1000}}
	p := prompts(t, data, PromptOptions{K: 5, Model: model, Answers: 4})
	for _, a := range p.Arms {
		if a.Answered != 4 || a.Right != 0 {
			t.Errorf("%s: %d answered, %v right, by a model that knows nothing", a.Name, a.Answered, a.Right)
		}
		if tooLong := a.Name == ArmWhole; tooLong != (a.TooLong > 0) {
			t.Errorf("%s: %d prompts too long", a.Name, a.TooLong)
		}
	}
	if p.Model == "" {
		t.Error("the model has no name")
	}
}

func TestChart(t *testing.T) {
	p := Prompted{Embedder: `<&">`, K: 3, Cache: 100, Arms: []Arm{
		{Name: ArmNone, Computed: 10, ComputedSmall: 20},
		{Name: ArmWhole, Computed: 50, ComputedSmall: 900, Held: 1},
		{Name: ArmTopK, Computed: 80, ComputedSmall: 90, Held: 0.5},
		{Name: ArmOurs, Computed: 60, ComputedSmall: 70, Held: 0.5},
	}}
	for _, model := range []string{"", "m"} {
		p.Model = model
		svg := string(p.Chart())
		dec := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := dec.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v in %s", err, svg)
			}
		}
		for _, want := range append([]string{"computed prompt tokens"}, arms...) {
			if !strings.Contains(svg, ">"+want) {
				t.Errorf("no %q in the picture", want)
			}
		}
		if strings.Contains(svg, "right answers") != (model != "") {
			t.Errorf("model %q: the axis says the wrong thing", model)
		}
	}
}
