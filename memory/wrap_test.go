package memory_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	lcmemory "github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/tools"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/memory"
)

func newPilot(t testing.TB) *contextpilot.Pilot {
	t.Helper()
	pilot := testkit.Must(contextpilot.New(contextpilot.Config{}))(t)
	offers := framework.OffersOf(pilot) // a wrapper that is not used any more keeps none
	t.Cleanup(func() { runtime.KeepAlive(offers) })
	return pilot
}

// recording returns a model over a simulator that answers "Noted." in the form that prompts ask for, and its prompts.
func recording(pilot *contextpilot.Pilot, answer string) (llms.Model, *[]string) {
	var prompts []string
	engine := sim.New(sim.Options{Reply: func(req engines.Request) string {
		prompts = append(prompts, req.Messages[len(req.Messages)-1].Content)
		return answer
	}})
	return langchain.Wrap(pilot, langchain.Model(engine)), &prompts
}

// The conversation chain of langchaingo, with the prompt that it has, shows what is remembered, and what is stated
// in a turn is remembered.
func TestWrapConversation(t *testing.T) {
	pilot, store := newPilot(t), newStore(t, memory.Config{})
	mustAdd(t, store, "Ana eats no fish.")
	llm, prompts := recording(pilot, "Noted.")
	chain := chains.NewConversation(llm, memory.Wrap(pilot, lcmemory.NewConversationBuffer(), store))
	ctx := memory.WithScope(framework.WithConversation(t.Context(), "thread-7"), ana)
	for _, question := range []string{"What fish may Ana eat?", "And no fish at all? Ana buys tea in Bergen."} {
		if _, err := chains.Run(ctx, chain, question); err != nil {
			t.Fatal(err)
		}
	}
	first := (*prompts)[0]
	if !strings.Contains(first, "Current conversation:\nKnown from earlier conversations:\n- Ana eats no fish.\nHuman: What fish") {
		t.Errorf("first prompt:\n%s", first)
	}
	if strings.Contains(first, "2026") || strings.Contains(first, "0.") {
		t.Errorf("a time or a score in the prompt:\n%s", first)
	}
	second := (*prompts)[1]
	if !strings.HasPrefix(second, first+" Noted.\nHuman: And no fish") || strings.Count(second, "Known from") != 1 {
		t.Errorf("second prompt:\n%s", second)
	}
	want := []string{"Ana eats no fish.", "Ana buys tea in Bergen."}
	if diff := cmp.Diff(want, textsOf(t, store, ana)); diff != "" {
		t.Error(diff)
	}
	if held := framework.OffersOf(pilot).Stats().Held; held != 0 {
		t.Errorf("%d plans are held: the model wrapper did not find the blocks", held)
	}
}

// One memory that is updated takes its place behind the others, whose bytes and order stay.
func TestUpdateDoesNotReshuffle(t *testing.T) {
	pilot, store := newPilot(t), newStore(t, memory.Config{})
	changes := mustAdd(t, store, "Ana likes green tea.", "Ana drinks tea at five.", "Ana drinks tea without milk.",
		"Ana buys tea in Bergen.")
	wrapped := memory.Wrap(pilot, lcmemory.NewConversationBuffer(), store, memory.WithRecallKey("memories"), memory.WithHeading(""))
	ctx := memory.WithScope(t.Context(), ana)
	load := func(question string) string {
		t.Helper()
		vars, err := wrapped.LoadMemoryVariables(ctx, map[string]any{"input": question})
		if err != nil {
			t.Fatal(err)
		}
		return vars["memories"].(string)
	}
	blocks := func(text string) []string { return strings.SplitAfter(text, "</doc>\n") }
	before := blocks(load("When does Ana drink tea?"))
	if len(before) != 4 {
		t.Fatalf("recalled %q", before)
	}
	if again := blocks(load("Which milk in her tea, and where does Ana buy it?")); !cmp.Equal(before, again) {
		t.Errorf("another question orders the same memories anew: %s", cmp.Diff(before, again))
	}
	text := "Ana drinks tea at six."
	if _, err := store.Update(ctx, changes[1].ID, memory.Update{Text: &text}); err != nil {
		t.Fatal(err)
	}
	var kept, want []string
	for _, b := range before {
		if !strings.Contains(b, "at five") {
			want = append(want, strings.TrimSpace(b))
		}
	}
	for _, b := range blocks(load("When does Ana drink tea?")) {
		if !strings.Contains(b, "at six") {
			kept = append(kept, strings.TrimSpace(b))
		}
	}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("the memories that did not change: %s", diff)
	}
}

// scripted answers with its lines, one a call, and keeps the prompts: an agent needs answers in a form.
type scripted struct {
	answers []string
	prompts []string
}

func (s *scripted) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, s, prompt, options...)
}

func (s *scripted) GenerateContent(_ context.Context, messages []llms.MessageContent, _ ...llms.CallOption) (*llms.ContentResponse, error) {
	s.prompts = append(s.prompts, messages[len(messages)-1].Parts[0].(llms.TextContent).Text)
	answer := s.answers[0]
	s.answers = s.answers[1:]
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: answer}}}, nil
}

func TestWrapAgent(t *testing.T) {
	pilot, store := newPilot(t), newStore(t, memory.Config{})
	mustAdd(t, store, "Ana pays in kroner.")
	llm := &scripted{answers: []string{
		"Thought: I should compute.\nAction: calculator\nAction Input: 2 + 3\n", "Thought: done\nAI: Five kroner.",
	}}
	agent := agents.NewConversationalAgent(llm, []tools.Tool{tools.Calculator{}})
	executor := agents.NewExecutor(agent, agents.WithMemory(memory.Wrap(pilot, lcmemory.NewConversationBuffer(), store)))
	answer, err := chains.Run(memory.WithScope(t.Context(), ana), executor, "How much does Ana pay for 2 and 3?")
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(answer) != "Five kroner." || len(llm.prompts) != 2 {
		t.Errorf("answer %q after %d calls", answer, len(llm.prompts))
	}
	for i, prompt := range llm.prompts {
		if strings.Count(prompt, "Ana pays in kroner.") != 1 {
			t.Errorf("step %d does not show the memory once:\n%s", i, prompt)
		}
	}
	if got := textsOf(t, store, ana); len(got) != 1 {
		t.Errorf("memories %q, want the old one: the turn is a question and an answer", got)
	}
}

func TestWrapMessages(t *testing.T) {
	pilot, store := newPilot(t), newStore(t, memory.Config{})
	mustAdd(t, store, "Ana eats no fish.")
	buffer := lcmemory.NewConversationBuffer(lcmemory.WithReturnMessages(true))
	_ = buffer.ChatHistory.AddUserMessage(t.Context(), "Hi") // cannot fail: it appends to a slice
	ctx := memory.WithScope(t.Context(), ana)
	for place, at := range map[memory.Place]int{memory.WithinHistory: 1, memory.BehindHistory: 1, memory.BeforeHistory: 0} {
		vars, err := memory.Wrap(pilot, buffer, store, memory.WithPlace(place)).LoadMemoryVariables(ctx, map[string]any{"input": "fish"})
		if err != nil {
			t.Fatal(err)
		}
		messages := vars["history"].([]llms.ChatMessage)
		if len(messages) != 2 || messages[at].GetType() != llms.ChatMessageTypeHuman || !strings.Contains(messages[at].GetContent(), "no fish") {
			t.Errorf("place %d: %+v", place, messages)
		}
	}
	if own, _ := buffer.ChatHistory.Messages(ctx); len(own) != 1 {
		t.Errorf("the history itself grew to %d", len(own))
	}
}

// gone is a fake store that fails.
type gone struct{ memory.Store }

var errGone = errors.New("the store is gone")

func (gone) Search(context.Context, memory.Scope, string, int, memory.SearchOptions) ([]memory.Hit, error) {
	return nil, errGone
}

func (gone) Add(context.Context, memory.Scope, []memory.Message, memory.AddOptions) ([]memory.Change, error) {
	return nil, errGone
}

func TestWrapErrors(t *testing.T) {
	pilot := newPilot(t)
	in, out := map[string]any{"input": "Hi"}, map[string]any{"text": "Ho"}
	ctx := memory.WithScope(t.Context(), ana)
	strict := memory.Wrap(pilot, lcmemory.NewConversationBuffer(), gone{})
	if _, err := strict.LoadMemoryVariables(ctx, in); !errors.Is(err, errGone) {
		t.Errorf("load = %v", err)
	}
	if err := strict.SaveContext(ctx, in, out); !errors.Is(err, errGone) {
		t.Errorf("save = %v", err)
	}
	var seen []error
	lenient := memory.Wrap(pilot, lcmemory.NewConversationBuffer(), gone{}, memory.WithErrors(func(err error) { seen = append(seen, err) }))
	vars, err := lenient.LoadMemoryVariables(ctx, in)
	if err != nil || vars["history"] != "" {
		t.Errorf("load = %v, %v", vars, err)
	}
	if err := lenient.SaveContext(ctx, in, out); err != nil || len(seen) != 2 {
		t.Errorf("save = %v; %d errors were reported", err, len(seen))
	}
	store := newStore(t, memory.Config{})
	plain := memory.Wrap(pilot, lcmemory.NewConversationBuffer(), store)
	_, loaded := plain.LoadMemoryVariables(t.Context(), in)
	for what, err := range map[string]error{"recall": loaded, "save": plain.SaveContext(t.Context(), in, out)} {
		want := "memory: " + what + ": no scope: set at least one of user, agent and run, by WithScope or WithDefaultScope"
		if !errors.Is(err, memory.ErrNoScope) || err.Error() != want {
			t.Errorf("without a scope = %v, want %s", err, want)
		}
	}
	long := memory.WithScope(t.Context(), memory.Scope{User: strings.Repeat("a", 1000)})
	if _, err := plain.LoadMemoryVariables(long, in); err == nil || strings.Count(err.Error(), "memory:") != 1 {
		t.Errorf("a scope that is too long = %v, want the package named once", err)
	}
	two := map[string]any{"a": "x", "b": "y"}
	if _, err := plain.LoadMemoryVariables(ctx, two); !errors.Is(err, memory.ErrInvalid) {
		t.Errorf("two inputs = %v", err)
	}
	keyed := memory.Wrap(pilot, lcmemory.NewConversationBuffer(), store, memory.WithKeys("b", ""))
	if _, err := keyed.LoadMemoryVariables(ctx, two); err != nil {
		t.Errorf("two inputs, one named = %v", err)
	}
}

// A conversation without a scope of its own remembers under its name; nobody else's memories are seen.
func TestWrapScopes(t *testing.T) {
	pilot, store := newPilot(t), newStore(t, memory.Config{})
	wrapped := memory.Wrap(pilot, lcmemory.NewConversationBuffer(), store)
	ctx := framework.WithConversation(t.Context(), "thread-7")
	if err := wrapped.SaveContext(ctx, map[string]any{"input": "I eat no fish."}, map[string]any{"text": "Noted."}); err != nil {
		t.Fatal(err)
	}
	if got := textsOf(t, store, memory.Scope{Run: "thread-7"}); len(got) != 1 {
		t.Errorf("stored %q", got)
	}
	vars, err := wrapped.LoadMemoryVariables(memory.WithScope(ctx, memory.Scope{User: "bo"}), map[string]any{"input": "fish?"})
	if err != nil || strings.Contains(vars["history"].(string), "Known from") {
		t.Errorf("another user sees %v, %v", vars, err)
	}
	recallOnly := memory.Wrap(pilot, lcmemory.NewSimple(), store, memory.WithRecallKey("memories"), memory.WithoutSaving(),
		memory.WithDefaultScope(memory.Scope{Run: "thread-7"}))
	vars, err = recallOnly.LoadMemoryVariables(t.Context(), map[string]any{"input": "fish?"})
	if err != nil || !strings.Contains(vars["memories"].(string), "I eat no fish.") {
		t.Errorf("by the default scope: %v, %v", vars, err)
	}
	if err := recallOnly.SaveContext(t.Context(), map[string]any{"input": "I eat no meat."}, map[string]any{"text": "y"}); err != nil {
		t.Error(err)
	}
	if got := textsOf(t, store, memory.Scope{Run: "thread-7"}); len(got) != 1 {
		t.Errorf("stored in spite of WithoutSaving: %q", got)
	}
}

// Every type of message comes back as it was.
func TestChatHistory(t *testing.T) {
	store := newStore(t, memory.Config{})
	h := memory.NewChatHistory(store, memory.Scope{Run: "7"})
	want := []llms.ChatMessage{
		llms.HumanChatMessage{Content: "Hi"},
		llms.AIChatMessage{
			Content:   "",
			ToolCalls: []llms.ToolCall{{ID: "1", Type: "function", FunctionCall: &llms.FunctionCall{Name: "f", Arguments: "{}"}}},
		},
		llms.ToolChatMessage{ID: "1", Content: "42"},
		llms.FunctionChatMessage{Name: "f", Content: "42"},
		llms.AIChatMessage{Content: "Yes", ReasoningContent: "hm"},
		llms.GenericChatMessage{Content: "Ho", Role: "narrator", Name: "n"},
		llms.SystemChatMessage{Content: "Be kind"},
	}
	var history schema.ChatMessageHistory = h
	for _, m := range want {
		if err := history.AddMessage(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want []llms.ChatMessage) {
		t.Helper()
		got, err := history.Messages(t.Context())
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	}
	check(want)
	if err := history.SetMessages(t.Context(), want[2:4]); err != nil {
		t.Fatal(err)
	}
	check(want[2:4])
	if err := errors.Join(history.Clear(t.Context()), history.AddUserMessage(t.Context(), "a"),
		history.AddAIMessage(t.Context(), "b")); err != nil {
		t.Fatal(err)
	}
	check([]llms.ChatMessage{llms.HumanChatMessage{Content: "a"}, llms.AIChatMessage{Content: "b"}})
	if err := memory.NewChatHistory(store, memory.Scope{}).AddUserMessage(t.Context(), "a"); !errors.Is(err, memory.ErrNoScope) {
		t.Errorf("without a scope: %v", err)
	}
	if err := history.AddMessage(t.Context(), nil); !errors.Is(err, memory.ErrInvalid) {
		t.Errorf("nil: %v", err)
	}
}
