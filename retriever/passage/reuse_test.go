package passage_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/retriever/passage"
)

// tokensOf is what a run came to, in tokens of all prompts.
type tokensOf struct{ prompt, computed int }

// TestReuse compares what the forms leave to compute on an engine with an unlimited cache. docs/adr/0016 rests on it.
func TestReuse(t *testing.T) {
	testkit.NotUnderRace(t)
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	for _, name := range []string{"multihop-2wiki", "memory-locomo-k100"} {
		for _, s := range splitters {
			c, trc := load(t, name, s.split)
			var found [][]passage.Chunk
			x := newIndex(c.chunks)
			for _, q := range trc {
				user, _, _ := strings.Cut(q.ID, "q")
				found = append(found, x.search(q.Query, 10, func(c passage.Chunk) bool { return name != "memory-locomo-k100" || c.Doc == user }))
			}
			results := map[string]tokensOf{}
			for _, form := range []struct {
				name string
				opts *passage.Options
			}{
				{"whole", nil},
				{"cut", &passage.Options{}},
				{"join", &passage.Options{Form: passage.Join}},
				{"cut, trimmed", &passage.Options{Trim: true}},
			} {
				r := reuse(t, trc, found, form.opts)
				results[form.name] = r
				t.Logf("%-18s %-9s %-12s prompt %5d computed %5d", name, s.name, form.name, r.prompt/len(trc), r.computed/len(trc))
			}
			// What the decision rests on, with room for other texts.
			if whole, cut := results["whole"], results["cut"]; cut.prompt >= whole.prompt || float64(cut.computed) > 1.13*float64(whole.computed) {
				t.Errorf("%s, %s: cut %+v, whole %+v", name, s.name, cut, whole)
			}
			if cut, join := results["cut"], results["join"]; s.name == "sentences" && float64(cut.computed) > 1.01*float64(join.computed) {
				t.Errorf("%s: cut %+v, join %+v", name, cut, join)
			}
			if cut, trimmed := results["cut"], results["cut, trimmed"]; trimmed.computed > cut.computed {
				t.Errorf("%s, %s: trimmed %+v, cut %+v", name, s.name, trimmed, cut)
			}
		}
	}
}

// reuse sends one request for each question; nil options send whole chunks.
func reuse(t *testing.T, trc []trace.Request, found [][]passage.Chunk, opts *passage.Options) (r tokensOf) {
	t.Helper()
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	engine := sim.New(sim.Options{})
	defer engine.Subscribe(pilot.Sink(contextpilot.Scope{}))()
	for i, q := range trc {
		plan := pilot.Plan(contextpilot.Request{Query: q.Query, Blocks: blocks(found[i], opts), HeadTokens: tokens.Count(trace.System)})
		answer, err := engine.Generate(context.Background(), engines.Request{ID: plan.RequestID, MaxTokens: 1, Messages: []engines.Message{
			{Role: "system", Content: trace.System}, {Role: "user", Content: plan.Prompt(trace.Question(q.Query))},
		}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.prompt += answer.Usage.PromptTokens
		r.computed += answer.Usage.PromptTokens - answer.Usage.CachedTokens
	}
	return r
}

func blocks(chunks []passage.Chunk, opts *passage.Options) []contextpilot.Block {
	var out []contextpilot.Block
	add := func(c passage.Chunk, text string) {
		out = append(out, contextpilot.Block{ID: fmt.Sprintf("%s#%d", c.Doc, c.Index), Text: text})
	}
	if opts == nil {
		for _, c := range chunks {
			add(c, c.Text)
		}
		return out
	}
	for _, p := range passage.Make(chunks, *opts) {
		add(chunks[p.Chunks[0]], p.Text)
	}
	return out
}
