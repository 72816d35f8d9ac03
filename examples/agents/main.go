// Command agents is a langchaingo agent with a tool and a memory: an executor whose tool answers from notes by a RetrievalQA
// chain over a retriever, and which remembers what was said in other conversations. It runs twice: without the wrappers,
// memories in the order in which they were found, and with them. The model is scripted, its prefix cache a simulator's.
package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	lcmemory "github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/tools"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/examples/internal/standin"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/retriever"
)

// scripted answers the prompts of langchaingo's ConversationalAgent and of the tool's chain.
func scripted(prompt string) string {
	_, asked, agent := strings.Cut(prompt, "New input: ")
	question, steps, _ := strings.Cut(asked, "\n")
	switch {
	case !agent:
		return "So it stands in the notes."
	case strings.Contains(steps, "Observation: "):
		return "Do I need to use a tool? No\nAI: I have looked it up."
	case strings.HasPrefix(question, "Remember"):
		return "Do I need to use a tool? No\nAI: I will."
	case strings.HasSuffix(question, "called?") && strings.Contains(prompt, "called Otter"): // which only the memory says
		return "Do I need to use a tool? No\nAI: Otter."
	}
	return "Do I need to use a tool? Yes\nAction: notes\nAction Input: " + question
}

// notes is a tool: a question about the canal lock, answered by a chain of its own.
type notes struct{ qa chains.Chain }

func (notes) Name() string { return "notes" }

func (notes) Description() string { return "Answers a question about the canal lock." }

func (n notes) Call(ctx context.Context, question string) (string, error) {
	return chains.Run(ctx, n.qa, question)
}

func main() {
	found, computed := run("retrieval"), run(contextpilot.DefaultPolicy)
	fmt.Printf("saved: %.0f%%\n", 100-100*float64(computed)/float64(found))
}

// run has three conversations with the agent and returns how many prompt tokens were computed.
func run(policy string) int {
	pilot, err := contextpilot.New(contextpilot.Config{Policy: policy})
	check(err)
	store, err := memory.New(memory.NewInMemory(), memory.Config{Embedder: memory.Lexical})
	check(err)
	defer store.Close()
	documents, done, err := standin.Notes(4)
	check(err)
	defer done()

	model := standin.NewModel(scripted)
	var llm llms.Model = model
	if policy != "retrieval" {
		llm, documents = langchain.Wrap(pilot, llm), retriever.Wrap(pilot, documents)
	}
	tool := notes{chains.NewRetrievalQAFromLLM(llm, documents)}
	fmt.Printf("policy %s\n", policy)
	for i, questions := range [][]string{
		{
			"Remember that my boat is called Otter.", "May I open the upper gates of the chamber myself?",
			"How do I wind up the paddles of the upper gates?",
		},
		{"Must the chamber be empty before the lower gates are opened?", "Which boats go first if the chamber is full?"},
		{"Does the keeper open the gates in a dry summer?", "What is my boat called?"},
	} {
		remembered := memory.Wrap(pilot, lcmemory.NewConversationBuffer(), store, memory.WithDefaultScope(memory.Scope{User: "ana"}))
		agent := agents.NewExecutor(agents.NewConversationalAgent(llm, []tools.Tool{tool}), agents.WithMemory(remembered))
		ctx := framework.WithConversation(context.Background(), fmt.Sprint("day-", i+1))
		for _, question := range questions {
			before := model.Computed()
			answer, err := chains.Run(ctx, agent, question)
			check(err)
			fmt.Printf("  %4d computed  %s%s\n", model.Computed()-before, question, answer)
		}
	}
	fmt.Printf("  %d of %d prompt tokens computed\n\n", model.Computed(), model.Prompted())
	return model.Computed()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
