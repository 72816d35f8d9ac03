package memory_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	lcmemory "github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/memory"
)

// What a model is sent at a turn begins with all that it was sent at the turn before, and has the k best memories, each once.
func TestWithinHistory(t *testing.T) {
	const k = 5
	facts, questions := fifty(t)
	for name, opts := range map[string][]memory.Option{
		"text": nil, "messages": nil, "text, blocks": {memory.WithBlocks()}, "messages, blocks": {memory.WithBlocks()},
	} {
		t.Run(name, func(t *testing.T) {
			messages := strings.HasPrefix(name, "messages")
			pilot, store, llm := newPilot(t), newStore(t, memory.Config{}), &fakeLLM{}
			mustAdd(t, store, facts...)
			model := langchain.Wrap(pilot, llm)
			wrapped := memory.Wrap(pilot, lcmemory.NewConversationBuffer(lcmemory.WithReturnMessages(messages)), store,
				append(opts, memory.WithK(k))...)
			var chain chains.Chain = chains.NewConversation(model, wrapped)
			if messages {
				chain = chat(model, wrapped)
			}
			ctx := memory.WithScope(framework.WithConversation(t.Context(), "thread-7"), ana)
			fresh := 0
			for i := range 25 {
				hits, err := store.Search(ctx, ana, questions[i], k, memory.SearchOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := chains.Run(ctx, chain, questions[i]); err != nil {
					t.Fatal(err)
				}
				if i > 0 && !begins(llm.sent[i], llm.sent[i-1]) {
					t.Fatalf("turn %d does not begin with the one before:\n%s", i, llm.prompt(i))
				}
				for _, h := range hits {
					if strings.Count(llm.prompt(i), h.Memory.Text) != 1 {
						t.Errorf("turn %d: %q does not stand there once:\n%s", i, h.Memory.Text, llm.prompt(i))
					}
					if i > 0 && !strings.Contains(llm.prompt(i-1), h.Memory.Text) {
						fresh++
					}
				}
			}
			if fresh == 0 || fresh == 24*k {
				t.Errorf("%d memories are new after the first turn: this shows nothing", fresh)
			}
			if last := llm.prompt(24); strings.Contains(last, "lease re") || strings.Contains(last, "elevance") {
				t.Errorf("a note stands among the memories:\n%s", last)
			}
		})
	}
}

// What was deleted, has expired, was changed, or is not searched for any more is not shown any more; what stood beside it stays.
func TestKeptIsLookedUp(t *testing.T) {
	const gone, stays = "Ana drinks green tea.", "Ana buys tea in Bergen."
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	text, soon := "Ana drinks black tea.", now.Add(time.Hour)
	for name, change := range map[string]func(store *memory.Local, id string) error{
		"deleted": func(store *memory.Local, id string) error {
			return store.Delete(t.Context(), id, memory.DeleteOptions{})
		},
		"expired": func(store *memory.Local, id string) error {
			_, err := store.Update(t.Context(), id, memory.Update{ExpiresAt: &soon})
			now = now.Add(2 * time.Hour)
			return err
		},
		"changed": func(store *memory.Local, id string) error {
			_, err := store.Update(t.Context(), id, memory.Update{Text: &text})
			return err
		},
		"filtered": func(store *memory.Local, id string) error {
			_, err := store.Update(t.Context(), id, memory.Update{Metadata: map[string]any{"secret": true}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t, memory.Config{Now: func() time.Time { return now }})
			added := mustAdd(t, store, gone, stays)
			c := newTalk(t, nil, store, memory.WithSearch(memory.SearchOptions{Filter: memory.Not(memory.Eq("secret", true))}))
			has(t, c.turn("What tea?"), map[string]int{gone: 1, stays: 1})
			has(t, c.turn("Which tea?"), map[string]int{gone: 1, stays: 1, "Known:": 1})
			if err := change(store, added[0].ID); err != nil {
				t.Fatal(err)
			}
			want := map[string]int{gone: 0, stays: 1, "Known:": 1}
			if name == "changed" {
				want[text], want["Known:"] = 1, 2
			}
			history := c.turn("And what tea?")
			has(t, history, want)
			if !strings.HasPrefix(history, "Known:\n") || strings.Index(history, stays) > strings.Index(history, "What tea?") {
				t.Errorf("what stays has moved:\n%s", history)
			}
			if name == "deleted" {
				if err := store.Delete(t.Context(), added[1].ID, memory.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				if history := c.load("What tea?"); strings.Contains(history, "Known:") {
					t.Errorf("a heading of nothing:\n%s", history)
				}
			}
		})
	}
}

// changing is a fake memory whose history is what it is set to.
type changing struct {
	schema.Memory
	history string
}

func (c *changing) LoadMemoryVariables(context.Context, map[string]any) (map[string]any, error) {
	return map[string]any{"history": c.history}, nil
}

func (*changing) GetMemoryKey(context.Context) string { return "history" }

// Within a history that does not go on where the last one ended nothing is put back: the best stand behind it, each once.
func TestKeptBeginsAnew(t *testing.T) {
	store := newStore(t, memory.Config{})
	mustAdd(t, store, "Ana drinks green tea.", "Ana keeps bees.")
	first := "Human: Hi\nAI: Ho"
	tests := map[string]struct{ second, want string }{
		"goes on":          {first + "\nHuman: bees?\nAI: Yes.", first + "\n\nKnown:\nBEES\nHuman: bees?\nAI: Yes.\n\nKnown:\nTEA"},
		"window":           {"AI: Ho\nHuman: bees?\nAI: Yes.", "AI: Ho\nHuman: bees?\nAI: Yes.\n\nKnown:\nTEA"},
		"edited":           {"Human: hi\nAI: Ho\nHuman: bees?\nAI: Yes.", "Human: hi\nAI: Ho\nHuman: bees?\nAI: Yes.\n\nKnown:\nTEA"},
		"goes on mid-line": {first + " and hum.", first + " and hum.\n\nKnown:\nTEA"},
		"shorter":          {"Human: Hi", "Human: Hi\n\nKnown:\nTEA"},
		"empty":            {"", "Known:\nTEA"},
		"the same":         {first, first + "\n\nKnown:\nTEA"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inner := &changing{Memory: lcmemory.NewSimple(), history: first}
			c := newTalk(t, inner, store, memory.WithK(1))
			blocks := strings.NewReplacer("BEES", shown(t, store, "What of her bees?"), "TEA", shown(t, store, "What tea?"))
			if diff := cmp.Diff(blocks.Replace(first+"\n\nKnown:\nBEES"), c.load("What of her bees?")); diff != "" {
				t.Fatal(diff)
			}
			inner.history = test.second
			if diff := cmp.Diff(blocks.Replace(test.want), c.load("What tea?")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A real window buffer drops turns: then the best stand behind what is left, each once.
func TestKeptInAWindow(t *testing.T) {
	const k = 3
	store := newStore(t, memory.Config{})
	facts, questions := fifty(t)
	mustAdd(t, store, facts...)
	c := newTalk(t, lcmemory.NewConversationWindowBuffer(2), store, memory.WithK(k))
	for i, q := range questions[:8] {
		history := c.turn(q)
		n := 0
		for _, fact := range facts {
			n += strings.Count(history, fact)
		}
		if n < k || i > 2 && (n != k || strings.Count(history, "Known:") != 1) {
			t.Errorf("turn %d shows %d memories:\n%s", i, n, history)
		}
	}
}

// Behind a history no engine has memories in its cache from another conversation: none are expected there, and they come best first.
func TestKeptExpectsNothing(t *testing.T) {
	store := newStore(t, memory.Config{})
	facts, questions := fifty(t)
	mustAdd(t, store, facts...)
	var plan contextpilot.Plan
	inner := &changing{Memory: lcmemory.NewSimple()}
	c := newTalk(t, inner, store, memory.WithK(5), memory.WithPlans(func(p contextpilot.Plan) { plan = p }))
	for i, q := range questions[:10] { // the first turn of ten conversations
		c.ctx = framework.WithConversation(c.ctx, fmt.Sprint("thread-", i))
		c.load(q)
	}
	c.ctx = framework.WithConversation(c.ctx, "another")
	if c.load(questions[0]); plan.Prefix.Blocks != 5 {
		t.Fatalf("of a first turn once more %d blocks are expected: this shows nothing", plan.Prefix.Blocks)
	}
	for i, q := range questions[:10] {
		inner.history = fmt.Sprintf("Human: Hi\nAI: Answer %d", i)
		c.ctx = framework.WithConversation(c.ctx, fmt.Sprint("going on ", i))
		if c.load(q); plan.Prefix.Blocks != 0 || plan.Reordered() || len(plan.Items) != 5 {
			t.Errorf("%q: of %d memories %d are expected, in another order: %v", q, len(plan.Items), plan.Prefix.Blocks, plan.Reordered())
		}
	}
}

// After Clear nothing of the conversation is left, in this one only.
func TestKeptAndClear(t *testing.T) {
	store := newStore(t, memory.Config{})
	mustAdd(t, store, "Ana drinks green tea.", "Ana keeps bees.")
	inner := &changing{Memory: lcmemory.NewSimple()}
	c := newTalk(t, inner, store, memory.WithK(1))
	other := *c
	other.ctx = framework.WithConversation(c.ctx, "thread-8")
	c.load("What tea?")
	other.load("What tea?")
	if err := c.m.Clear(c.ctx); err != nil {
		t.Fatal(err)
	}
	inner.history = "Human: What tea?\nAI: I see."
	has(t, c.load("What of her bees?"), map[string]int{"green tea": 0, "bees": 1})
	has(t, other.load("What of her bees?"), map[string]int{"green tea": 1, "bees": 1})
}

// A turn that is loaded again has the same bytes, and another input at the same place replaces what was found for the first.
func TestKeptOfOneTurnTwice(t *testing.T) {
	store := newStore(t, memory.Config{})
	facts, questions := fifty(t)
	mustAdd(t, store, facts...)
	c := newTalk(t, nil, store, memory.WithK(3))
	others := 0
	for _, q := range questions[:5] {
		first := c.load(q)
		if again := c.load(q); again != first {
			t.Fatal(cmp.Diff(first, again))
		}
		if c.load("Has she a violin?") != first {
			others++
		}
		if again := c.turn(q); again != first {
			t.Fatal(cmp.Diff(first, again))
		}
	}
	if others == 0 {
		t.Error("another input has what was found for the first")
	}
}

// Conversations and scopes have nothing in common, and the one that was used last of all is forgotten.
func TestKeptConversations(t *testing.T) {
	store := newStore(t, memory.Config{})
	mustAdd(t, store, "Ana drinks green tea.", "Ana keeps bees.")
	if _, err := store.Add(t.Context(), memory.Scope{User: "bo"}, said("Bo drinks coffee."), memory.AddOptions{}); err != nil {
		t.Fatal(err)
	}
	inner := &changing{Memory: lcmemory.NewSimple()}
	c := newTalk(t, inner, store, memory.WithK(1))
	const conversations = 1000
	at := func(i int, input string) string {
		one := *c
		one.ctx = framework.WithConversation(c.ctx, fmt.Sprint("thread-", i))
		return one.load(input)
	}
	for i := range conversations + 1 {
		at(i, "What tea?")
	}
	bo := *c
	bo.ctx = memory.WithScope(framework.WithConversation(c.ctx, "thread-1000"), memory.Scope{User: "bo"})
	inner.history = "Human: What tea?\nAI: I see."
	has(t, bo.load("What coffee?"), map[string]int{"green tea": 0, "coffee": 1})
	has(t, at(conversations, "What of her bees?"), map[string]int{"green tea": 1, "bees": 1})
	has(t, at(0, "What of her bees?"), map[string]int{"green tea": 0, "bees": 1})
}

// failing is a fake: a store whose look-ups and searches fail when they are asked to.
type failing struct {
	*memory.Local
	get, search bool
}

func (f *failing) GetMany(ctx context.Context, ids []string, opts memory.ListOptions) ([]memory.Memory, error) {
	if f.get {
		return nil, errGone
	}
	return f.Local.GetMany(ctx, ids, opts)
}

func (f *failing) Search(ctx context.Context, scope memory.Scope, query string, k int, opts memory.SearchOptions) ([]memory.Hit, error) {
	if f.search {
		return nil, errGone
	}
	return f.Local.Search(ctx, scope, query, k, opts)
}

// Of what cannot be looked up nothing is shown, and nothing is lost by that: it stands there again at the next turn.
func TestKeptErrors(t *testing.T) {
	store := &failing{Local: newStore(t, memory.Config{})}
	mustAdd(t, store, "Ana drinks green tea.", "Ana keeps bees.")
	strict := newTalk(t, nil, store, memory.WithK(1))
	strict.turn("What tea?")
	store.get = true
	if _, err := strict.m.LoadMemoryVariables(strict.ctx, map[string]any{"input": "What?"}); !errors.Is(err, errGone) {
		t.Errorf("load = %v", err)
	}
	store.get = false
	var seen []error
	c := newTalk(t, nil, store, memory.WithK(1), memory.WithErrors(func(err error) { seen = append(seen, err) }))
	c.turn("What tea?")
	before := c.turn("Which tea?")
	store.get = true
	if history := c.turn("Her bees?"); strings.Contains(history, "Known:") || len(seen) != 1 {
		t.Errorf("%d errors; of what cannot be looked up the prompt has\n%s", len(seen), history)
	}
	store.get, store.search = false, true
	if history := c.turn("Her bees?"); !strings.HasPrefix(history, before) || strings.Contains(history, "keeps") || len(seen) != 2 {
		t.Errorf("%d errors; without a search the prompt has\n%s", len(seen), history)
	}
	store.search = false
	history := c.turn("Her bees?")
	if !strings.HasPrefix(history, before) || len(seen) != 2 {
		t.Errorf("%d errors; then the prompt has\n%s", len(seen), history)
	}
	has(t, history, map[string]int{"green tea": 1, "Ana keeps bees": 1})
}

// A store that cannot look up many memories at once, and WithPlace(BehindHistory), have what was found behind the history and
// nothing within it.
func TestNothingKept(t *testing.T) {
	store := newStore(t, memory.Config{})
	mustAdd(t, store, "Ana drinks green tea.", "Ana keeps bees.")
	for name, c := range map[string]*talk{
		"store":  newTalk(t, nil, struct{ memory.Store }{store}, memory.WithK(1)),
		"option": newTalk(t, nil, store, memory.WithK(1), memory.WithPlace(memory.BehindHistory)),
	} {
		c.turn("What tea?")
		if history := c.turn("What of her bees?"); !strings.HasPrefix(history, "Human: What tea?\nAI: I see.\n\nKnown:\n") {
			t.Errorf("%s:\n%s", name, history)
		}
	}
}

// Goroutines that load and save one conversation get histories with each memory once, and behind them one that goes on.
func TestKeptConcurrently(t *testing.T) {
	store := newStore(t, memory.Config{Now: time.Now})
	facts, questions := fifty(t)
	mustAdd(t, store, facts...)
	inner := &changing{Memory: lcmemory.NewSimple()}
	c := newTalk(t, inner, store, memory.WithK(5))
	for turn := range 5 {
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				vars, err := c.m.LoadMemoryVariables(c.ctx, map[string]any{"input": questions[4*turn+i]})
				if err != nil {
					t.Error(err)
					return
				}
				for _, fact := range facts {
					if strings.Count(vars["history"].(string), fact) > 1 {
						t.Errorf("turn %d: %q stands twice:\n%s", turn, fact, vars["history"])
					}
				}
			})
		}
		wg.Wait()
		inner.history += fmt.Sprintf("\nHuman: Question %d?\nAI: I see.", turn)
	}
	first := c.load(questions[0])
	inner.history += "\nHuman: Another?\nAI: I see."
	if second := c.load(questions[1]); !strings.HasPrefix(second, first) {
		t.Errorf("of\n%s\nthis is not the beginning:\n%s", second, first)
	}
}

// opaque is a message that JSON shows nothing of.
type opaque struct{ text string }

func (o opaque) GetType() llms.ChatMessageType { return llms.ChatMessageTypeHuman }
func (o opaque) GetContent() string            { return o.text }

// messages is a memory of a chain with a history that the test sets.
type messages struct {
	changing
	history []llms.ChatMessage
}

func (m *messages) LoadMemoryVariables(context.Context, map[string]any) (map[string]any, error) {
	return map[string]any{"history": m.history}, nil
}

// Another conversation is recognized by its messages, whatever their type.
func TestKeptOpaqueMessages(t *testing.T) {
	store := newStore(t, memory.Config{})
	mustAdd(t, store, "Ana drinks green tea.", "Ana keeps bees.")
	inner := &messages{changing: changing{Memory: lcmemory.NewSimple()}}
	ctx := memory.WithScope(framework.WithConversation(t.Context(), "thread-7"), ana)
	m := memory.Wrap(newPilot(t), inner, store, memory.WithoutSaving(), memory.WithK(1))
	for _, turn := range []struct {
		said  []string
		input string
	}{{[]string{"one", "two"}, "What tea?"}, {[]string{"quite", "another conversation", "x", "y"}, "What of her bees?"}} {
		inner.history = nil
		for _, text := range turn.said {
			inner.history = append(inner.history, opaque{text})
		}
		loaded, err := m.LoadMemoryVariables(ctx, map[string]any{"input": turn.input})
		if err != nil {
			t.Fatal(err)
		}
		if history := loaded["history"].([]llms.ChatMessage); len(history) != len(turn.said)+1 {
			t.Errorf("%d messages, want %d and one of memories", len(history), len(turn.said))
		}
	}
}
