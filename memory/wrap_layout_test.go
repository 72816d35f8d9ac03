package memory_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/chains"
	lcmemory "github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/memory"
)

// metered adds up what its engine reports, and counts the prompts that have all of some texts.
type metered struct {
	engines.Engine
	texts                              []string
	requests, prompt, cached, complete int
}

func (m *metered) Generate(ctx context.Context, req engines.Request, onText func(string) error) (engines.Response, error) {
	r, err := m.Engine.Generate(ctx, req, onText)
	m.requests++
	m.prompt += r.Usage.PromptTokens
	m.cached += r.Usage.CachedTokens
	all := true
	for _, text := range m.texts {
		all = all && strings.Contains(req.Messages[len(req.Messages)-1].Content, text)
	}
	if all {
		m.complete++
	}
	return r, err
}

// preferences always hold.
var preferences = []string{
	"Answer in British English.", "Use metric units.", "Never suggest fish or seafood.", "Keep answers under four sentences.",
	"Address me as Ana.", "Write dates as day, month, year.",
}

// layout has a user ask 100 questions in four conversations, with 50 facts and 6 preferences stored, and returns what a simulated
// engine with an unlimited prefix cache counts.
func layout(t *testing.T, k int, opts ...memory.Option) *metered {
	t.Helper()
	facts, questions := fifty(t)
	pilot, store := newPilot(t), newStore(t, memory.Config{Embedder: embed.NewHashed(0)})
	for kind, texts := range map[string][]string{"fact": facts, "preference": preferences} {
		if _, err := store.Add(t.Context(), ana, said(texts...),
			memory.AddOptions{Extractor: memory.Everything{}, Metadata: map[string]any{"kind": kind}}); err != nil {
			t.Fatal(err)
		}
	}
	engine := &metered{texts: preferences}
	engine.Engine = sim.New(sim.Options{Reply: func(engines.Request) string {
		return fmt.Sprintf("This is answer number %d, which has about as many words as a short answer of a model has.", engine.requests)
	}})
	model := langchain.Wrap(pilot, langchain.Model(engine))
	for thread := range 4 {
		ctx := memory.WithScope(framework.WithConversation(t.Context(), fmt.Sprint("thread-", thread)), ana)
		var m schema.Memory = lcmemory.NewConversationBuffer()
		if k > 0 {
			m = memory.Wrap(pilot, m, store, append(opts, memory.WithK(k), memory.WithSearch(memory.SearchOptions{Threshold: -1}))...)
		}
		chain := chains.NewConversation(model, m)
		for i := range 25 {
			if _, err := chains.Run(ctx, chain, questions[(7*(25*thread+i))%len(questions)]); err != nil {
				t.Fatal(err)
			}
		}
	}
	return engine
}

// Memories that stay where they were first shown cost a part of what they cost behind the history, in front of it they cost the
// history at each turn; what is stable costs nothing there. With -v this prints the table of docs/memory.md.
func TestLayouts(t *testing.T) {
	const k = 8
	rows := []struct {
		name string
		*metered
	}{
		{"no memories", layout(t, 0)},
		{"where they were first shown (default)", layout(t, k)},
		{"all behind the history", layout(t, k, memory.WithPlace(memory.BehindHistory))},
		{"all before the history", layout(t, k, memory.WithPlace(memory.BeforeHistory))},
		{
			"preferences before, facts where first shown (`WithStable`)",
			layout(t, k, memory.WithStable(memory.Eq("kind", "preference"), 0, "Always:")),
		},
	}
	table := "| memories | prompt tokens | computed | computed per turn | turns with all preferences |\n|---|---|---|---|---|\n"
	computed := make([]int, len(rows))
	for i, r := range rows {
		computed[i] = r.prompt - r.cached
		table += fmt.Sprintf("| %s | %d | %d | %.0f | %d of %d |\n", r.name, r.prompt, computed[i], float64(computed[i])/float64(r.requests),
			r.complete, r.requests)
	}
	t.Log("\n" + table)
	within, behind, before, stable := computed[1], computed[2], computed[3], computed[4]
	if behind < 2*within || before < 2*behind {
		t.Errorf("before the history %d tokens are computed, behind it %d, within it %d: want half of them at most each time", before, behind,
			within)
	}
	if stable > within*11/10 || rows[4].complete != rows[4].requests {
		t.Errorf("with preferences in front %d tokens are computed, %d without; %d of %d prompts have all", stable, within, rows[4].complete,
			rows[4].requests)
	}
}
