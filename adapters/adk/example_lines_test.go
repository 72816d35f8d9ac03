package adk_test

import (
	"context"
	"fmt"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/preloadmemorytool"
	"google.golang.org/genai"

	"github.com/ragpilot/ragpilot/adapters/adk"
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/memory"
)

// The examples of docs/frameworks.md, in five and in fifteen lines beside what a program has: a model, a store of memories,
// and how it asks.

// check stands for what a program does with an error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// said asks an agent and returns the last thing that it says.
func said(ctx context.Context, r *runner.Runner, session, question string) (answer string) {
	for event, err := range r.Run(ctx, "ana", session, genai.NewContentFromText(question, genai.RoleUser), agent.RunConfig{}) {
		check(err)
		if event.Content != nil {
			answer = event.Content.Parts[0].Text
		}
	}
	return answer
}

func Example_five() {
	ctx, model := context.Background(), &fakeLLM{} // a fake that says yes
	store, err := memory.New(memory.NewInMemory(), memory.Config{})
	check(err)
	defer store.Close()
	sessions := session.InMemoryService()

	pilot, _ := contextpilot.New(contextpilot.Config{})
	bees, err := llmagent.New(llmagent.Config{Name: "bees", Model: adk.Model(pilot, model, adk.ModelOptions{})})
	check(err)
	recall := adk.Memory(pilot, store, adk.MemoryOptions{})
	r, err := runner.New(runner.Config{AppName: "app", Agent: bees, SessionService: sessions, MemoryService: recall, AutoCreateSession: true})

	check(err)
	fmt.Println(said(ctx, r, "monday", "Do I keep bees?"))
	// Output: yes
}

func Example_fifteen() {
	ctx, model := context.Background(), &fakeLLM{} // a fake that says yes
	store, err := memory.New(memory.NewInMemory(), memory.Config{})
	check(err)
	defer store.Close()
	sessions := session.InMemoryService()

	pilot, _ := contextpilot.New(contextpilot.Config{})
	recall := adk.Memory(pilot, store, adk.MemoryOptions{K: 5})
	bees, err := llmagent.New(llmagent.Config{
		Name: "bees", Model: adk.Model(pilot, model, adk.ModelOptions{}), Tools: []tool.Tool{preloadmemorytool.New()},
	})
	check(err)
	r, err := runner.New(runner.Config{AppName: "app", Agent: bees, SessionService: sessions, MemoryService: recall, AutoCreateSession: true})
	check(err)
	said(framework.WithConversation(ctx, "monday"), r, "monday", "I keep bees.")
	got, err := sessions.Get(ctx, &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "monday"})
	check(err)
	err = recall.AddSessionToMemory(ctx, got.Session)
	check(err)
	fmt.Println(said(framework.WithConversation(ctx, "friday"), r, "friday", "Which animals do I keep?"))

	asked := model.asked[len(model.asked)-1]
	fmt.Println(asked.Config.SystemInstruction.Parts[0].Text)
	// Output:
	// yes
	// You are an agent. Your internal name is "bees".
	//
	// The following content is from your previous conversations with the user.
	// They may be useful for answering the user's current query.
	// <PAST_CONVERSATIONS>
	// user: I keep bees.
	// </PAST_CONVERSATIONS>
}
