package memory_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	lcmemory "github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/prompts"
	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/memory"
)

// fakeLLM numbers its answers and notes what it is sent.
type fakeLLM struct{ sent [][]llms.MessageContent }

func (f *fakeLLM) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, f, prompt, options...)
}

func (f *fakeLLM) GenerateContent(_ context.Context, messages []llms.MessageContent, _ ...llms.CallOption) (*llms.ContentResponse, error) {
	f.sent = append(f.sent, messages)
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: fmt.Sprintf("This is answer number %d.", len(f.sent))}}}, nil
}

// prompt returns all texts of a call.
func (f *fakeLLM) prompt(i int) string {
	var all []string
	for _, m := range f.sent[i] {
		for _, part := range m.Parts {
			all = append(all, part.(llms.TextContent).Text)
		}
	}
	return strings.Join(all, "\n")
}

// chat is a chain whose prompt has messages.
func chat(model llms.Model, m schema.Memory) chains.Chain {
	chain := chains.NewLLMChain(model, prompts.NewChatPromptTemplate([]prompts.MessageFormatter{
		prompts.NewSystemMessagePromptTemplate("Be brief.", nil),
		prompts.MessagesPlaceholder{VariableName: "history"},
		prompts.NewHumanMessagePromptTemplate("{{.input}}", []string{"input"}),
	}))
	chain.Memory = m
	return chain
}

// What the conversation shows, and the question itself, is not recalled: others come in its place.
func TestRecallLeavesOutWhatIsShown(t *testing.T) {
	for _, messages := range []bool{false, true} {
		pilot, store, llm := newPilot(t), newStore(t, memory.Config{}), &fakeLLM{}
		mustAdd(t, store, "Ana drinks green tea.", "Ana drinks tea at five.", "Ana buys tea in Bergen.", "Ana's tea pot is blue.")
		wrapped := memory.Wrap(pilot, lcmemory.NewConversationBuffer(lcmemory.WithReturnMessages(messages)), store,
			memory.WithK(2), memory.WithHeading("Known:"), memory.WithAdd(memory.AddOptions{Extractor: memory.Everything{}}))
		model := langchain.Wrap(pilot, llm)
		var chain chains.Chain = chains.NewConversation(model, wrapped)
		if messages {
			chain = chat(model, wrapped)
		}
		said := []string{
			"Ana drinks green tea.", "Hi! Ana  drinks\ntea at six. What tea? Ana likes tea with milk.", "What tea?", "Which tea does Ana drink?",
			"Which tea does Ana drink?",
		}
		for i, text := range said {
			if _, err := chains.Run(memory.WithScope(t.Context(), ana), chain, text); err != nil {
				t.Fatal(err)
			}
			prompt := llm.prompt(i)
			if n := strings.Count(prompt, "\n- "); n != 2 {
				t.Errorf("messages %v, %q: %d memories, want 2 others:\n%s", messages, text, n, prompt)
			}
			for j := range i + 1 {
				times := 0
				for _, s := range said[:i+1] {
					times += strings.Count(s, said[j])
				}
				if n := strings.Count(prompt, said[j]); n != times {
					t.Errorf("messages %v: %q stands %d times in\n%s", messages, said[j], n, prompt)
				}
			}
			if i > 0 && strings.Count(prompt, "answer number 1.") != 1 {
				t.Errorf("messages %v: an answer stands twice in\n%s", messages, prompt)
			}
		}
	}
}

// A memory that is a part of a word is not shown by the word, and one that says more than the history is recalled.
func TestRecallOfParts(t *testing.T) {
	pilot, store := newPilot(t), newStore(t, memory.Config{})
	mustAdd(t, store, "Anna", "Anna keeps bees. Anna lives in Oslo.", "Anna keeps bees.", "Anna lives in Oslo. Anna sings.")
	buffer := lcmemory.NewConversationBuffer()
	_ = buffer.ChatHistory.AddUserMessage(t.Context(),
		"Anna keeps bees. Does Annabel? Anna lives in Oslo.") // cannot fail: it appends to a slice
	wrapped := memory.Wrap(pilot, buffer, store, memory.WithRecallKey("memories"), memory.WithHeading(""),
		memory.WithSearch(memory.SearchOptions{Threshold: -1}))
	vars, err := wrapped.LoadMemoryVariables(memory.WithScope(t.Context(), ana), map[string]any{"input": "Annabel?"})
	if err != nil {
		t.Fatal(err)
	}
	got := vars["memories"].(string)
	if strings.Count(got, "<doc ") != 1 || !strings.Contains(got, "Anna lives in Oslo. Anna sings.") {
		t.Errorf("recalled\n%s", got)
	}
}

// What is stable stands in front of the history with the same bytes, whatever is asked; the rest stands behind it.
func TestStable(t *testing.T) {
	for _, messages := range []bool{false, true} {
		pilot, store, llm := newPilot(t), newStore(t, memory.Config{}), &fakeLLM{}
		ctx := memory.WithScope(t.Context(), ana)
		for kind, texts := range map[string][]string{
			"preference": {"Answer in German.", "Ana likes short sentences."},
			"fact":       {"Ana keeps bees.", "Ana has a boat."},
		} {
			if _, err := store.Add(ctx, ana, said(texts...), memory.AddOptions{Metadata: map[string]any{"kind": kind}}); err != nil {
				t.Fatal(err)
			}
		}
		wrapped := memory.Wrap(pilot, lcmemory.NewConversationBuffer(lcmemory.WithReturnMessages(messages)), store, memory.WithK(1),
			memory.WithStable(memory.Eq("kind", "preference"), 0, "Always:"), memory.WithSearch(memory.SearchOptions{Threshold: -1}))
		chain := chat(langchain.Wrap(pilot, llm), wrapped)
		if !messages {
			chain = chains.NewConversation(langchain.Wrap(pilot, llm), wrapped)
		}
		for i, q := range []string{"What of her bees?", "Has Ana a boat?", "What sentences does Ana like in German?"} {
			if _, err := chains.Run(ctx, chain, q); err != nil {
				t.Fatal(err)
			}
			prompt := llm.prompt(i)
			front := strings.Index(prompt, "Always:\n<doc ")
			asked := strings.Index(prompt, "What of her bees?")
			found := strings.LastIndex(prompt, "Known from earlier")
			if front < 0 || asked < front || i == 1 && found < asked || strings.Count(prompt, "<doc ") != 2 ||
				strings.Count(prompt, "\n- ") != 1+min(i, 1) ||
				strings.Index(prompt, "Answer in German.") > strings.Index(prompt, "Ana likes short sentences.") {
				t.Errorf("messages %v:\n%s", messages, prompt)
			}
			if i > 0 && !strings.HasPrefix(prompt, llm.prompt(i-1)) {
				t.Errorf("messages %v: the prompt does not begin with the one before:\n%s", messages, prompt)
			}
		}
	}
}

// fifty are facts, and of each a question in other words.
func fifty(t testing.TB) (facts, questions []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/fifty.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fact, question, _ := strings.Cut(strings.TrimSpace(line), "\t")
		facts, questions = append(facts, fact), append(questions, question)
	}
	return facts, questions
}

// askTwice asks all questions in one conversation, twice over, and returns how many of the prompts of each round have their
// fact. It checks that nothing stands twice and that each prompt begins with the whole one before, but where the memories begin
// anew, which it counts.
func askTwice(t *testing.T, store memory.Store, k int) (right [2]int, anew int) {
	t.Helper()
	facts, questions := fifty(t)
	mustAdd(t, store, facts...)
	pilot, llm := newPilot(t), &fakeLLM{}
	chain := chains.NewConversation(langchain.Wrap(pilot, llm), memory.Wrap(pilot, lcmemory.NewConversationBuffer(), store, memory.WithK(k)))
	ctx := memory.WithScope(framework.WithConversation(t.Context(), "thread-7"), ana)
	before := ""
	for round := range 2 {
		for i, q := range questions {
			if i == 25 { // the conversation has a statement, too, that the store has from now on
				q = fmt.Sprintf("My boat number %d is red. %s", round, q)
			}
			if _, err := chains.Run(ctx, chain, q); err != nil {
				t.Fatal(err)
			}
			prompt := llm.prompt(len(llm.sent) - 1)
			if strings.Contains(prompt, facts[i]) {
				right[round]++
			}
			for j, text := range slices.Concat(facts, questions, []string{"My boat number 0 is red.", "This is answer number 1."}) {
				times := 1
				if at := j - len(facts); round == 1 && at >= 0 && at <= i && at < len(questions) {
					times = 2 // it was asked twice
				}
				if n := strings.Count(prompt, text); n > times {
					t.Fatalf("round %d, question %d: %q stands %d times in\n%s", round, i, text, n, prompt)
				}
			}
			if !strings.HasPrefix(prompt, before) {
				anew++
				if n := strings.Count(prompt, "\n- "); n != k || strings.Count(prompt, "Known from earlier") != 1 {
					t.Fatalf("round %d, question %d: the prompt does not begin with the one before, and has %d memories:\n%s", round, i, n, prompt)
				}
			}
			before = prompt
		}
	}
	return right, anew
}

// Without a model the words of question and fact decide, in both rounds alike.
func TestFiftyTwice(t *testing.T) {
	for _, k := range []int{5, memory.DefaultK} {
		right, anew := askTwice(t, newStore(t, memory.Config{}), k)
		t.Logf("k = %d: %d and %d of 50 prompts have their fact; the memories begin anew %d times", k, right[0], right[1], anew)
		if right[1] < right[0]-1 || anew > 0 {
			t.Errorf("k = %d: %d of 50 prompts have their fact, and %d after use; the memories begin anew %d times", k, right[0], right[1], anew)
		}
	}
}

func TestFiftyTwiceMiniLM(t *testing.T) {
	testkit.NotUnderRace(t)
	embedder := sentenceModel(t)
	for _, k := range []int{5, memory.DefaultK} {
		right, anew := askTwice(t, newStore(t, memory.Config{Embedder: embedder}), k)
		t.Logf("k = %d: %d and %d of 50 prompts have their fact; the memories begin anew %d times", k, right[0], right[1], anew)
		if right[0] < 47 || right[1] < 47 || anew > 0 {
			t.Errorf("k = %d: %v of 50 prompts have their fact, want 47; the memories begin anew %d times", k, right, anew)
		}
	}
}
