package memory_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tmc/langchaingo/chains"
	lcmemory "github.com/tmc/langchaingo/memory"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/memory"
)

// remembered returns a store that knows three things about ana.
func remembered(ctx context.Context) *memory.Local {
	store, err := memory.New(memory.NewInMemory(), memory.Config{})
	if err != nil {
		log.Fatal(err)
	}
	_, err = store.Add(ctx, memory.Scope{User: "ana"}, []memory.Message{
		{Role: memory.User, Content: "I am allergic to peanuts."},
		{Role: memory.User, Content: "I work in Bergen."},
		{Role: memory.User, Content: "My sister is called Eva."},
	}, memory.AddOptions{Metadata: map[string]any{"source": "chat"}})
	if err != nil {
		log.Fatal(err)
	}
	return store
}

// Memories are added, found, changed, and deleted with what their history says.
func Example() {
	ctx := context.Background()
	store := remembered(ctx)
	defer store.Close()
	ana := memory.Scope{User: "ana"}

	hits, err := store.Search(ctx, ana, "Where does she work?", 1, memory.SearchOptions{})
	if err != nil {
		log.Fatal(err)
	}
	found := hits[0].Memory
	fmt.Println(found.Text)

	text := "I work in Oslo."
	if _, err := store.Update(ctx, found.ID, memory.Update{Text: &text}); err != nil {
		log.Fatal(err)
	}
	if err := store.Delete(ctx, found.ID, memory.DeleteOptions{}); err != nil {
		log.Fatal(err)
	}
	history, err := store.History(ctx, found.ID)
	if err != nil {
		log.Fatal(err)
	}
	for _, revision := range history {
		fmt.Printf("%s %q\n", revision.Event, revision.New)
	}
	// Output:
	// I work in Bergen.
	// ADD ""
	// UPDATE ""
	// DELETE ""
}

// The conversation chain of langchaingo recalls what was said in other conversations.
func ExampleWrap() {
	ctx := context.Background()
	store := remembered(ctx)
	defer store.Close()
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		log.Fatal(err)
	}
	engine := sim.New(sim.Options{Reply: func(req engines.Request) string {
		fmt.Println(req.Messages[0].Content)
		return "No, it has peanuts."
	}})
	chain := chains.NewConversation(
		langchain.Wrap(pilot, langchain.Model(engine)),
		memory.Wrap(pilot, lcmemory.NewConversationBuffer(), store, memory.WithK(1)))
	ctx = memory.WithScope(framework.WithConversation(ctx, "thread-7"), memory.Scope{User: "ana"})
	if _, err := chains.Run(ctx, chain, "Can I eat something with peanuts?"); err != nil {
		log.Fatal(err)
	}
	// Output:
	// The following is a friendly conversation between a human and an AI. The AI is talkative and provides lots of specific details from its context. If the AI does not know the answer to a question, it truthfully says it does not know.
	//
	// Current conversation:
	// Known from earlier conversations:
	// - I am allergic to peanuts.
	// Human: Can I eat something with peanuts?
	// AI:
}

// A chat history that outlives the process, if its backend does.
func ExampleNewChatHistory() {
	ctx := context.Background()
	store := remembered(ctx)
	defer store.Close()
	history := memory.NewChatHistory(store, memory.Scope{User: "ana", Run: "thread-7"})
	buffer := lcmemory.NewConversationBuffer(lcmemory.WithChatHistory(history))
	if err := buffer.SaveContext(ctx, map[string]any{"input": "Hi"}, map[string]any{"text": "Hello Ana"}); err != nil {
		log.Fatal(err)
	}
	variables, err := buffer.LoadMemoryVariables(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(variables["history"])
	// Output:
	// Human: Hi
	// AI: Hello Ana
}

// fixed stands for a model that answers well.
type fixed []string

func (f *fixed) Complete(context.Context, string, string) (string, error) {
	answer := (*f)[0]
	*f = (*f)[1:]
	return answer, nil
}

// What is said later replaces what contradicts it.
func ExampleReconcile() {
	ctx := context.Background()
	model := &fixed{
		`{"facts": ["Lives in Oslo"]}`,
		`{"facts": ["Lives in Bergen"]}`, `{"memory": [{"id": "0", "event": "UPDATE", "text": "Lives in Bergen"}]}`,
	}
	store, err := memory.New(memory.NewInMemory(), memory.Config{Extractor: memory.Reconcile(model)})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	for _, said := range []string{"I live in Oslo.", "We moved to Bergen last week."} {
		changes, err := store.Add(ctx, memory.Scope{User: "ana"}, []memory.Message{{Role: memory.User, Content: said}}, memory.AddOptions{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(changes[0].Event, changes[0].Text)
	}
	// Output:
	// ADD Lives in Oslo
	// UPDATE Lives in Bergen
}

// Filters select by metadata and by the fields of a memory.
func ExampleFilter() {
	ctx := context.Background()
	store := remembered(ctx)
	defer store.Close()
	filter := memory.And(memory.Eq("source", "chat"), memory.Not(memory.Where("text", memory.OpIcontains, "SISTER")))
	all, err := store.GetAll(ctx, memory.Scope{User: "ana"}, memory.ListOptions{Filter: filter})
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range all {
		fmt.Println(m.Text)
	}
	// Output:
	// I am allergic to peanuts.
	// I work in Bergen.
}
