// Command sidecar runs an unchanged langchaingo program twice: straight to an engine, and with its base URL pointed at
// the sidecar in front of it. The program is an agent that reads the same notes again and again. Both servers run in
// this process, as "ragpilot bench upstream" and "ragpilot serve" would run beside it; the engine is a simulator: its
// prefix cache is real, its answers are not.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"strings"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/ragpilot/ragpilot/internal/lab/upstream"
	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

func main() {
	engine := httptest.NewServer(upstream.New(upstream.Options{Tokens: 8}))
	defer engine.Close()
	plain := agent(engine.URL + "/v1")

	fresh := httptest.NewServer(upstream.New(upstream.Options{Tokens: 8}))
	defer fresh.Close()
	cfg := settings.Default()
	cfg.InferAPIURL = fresh.URL
	api, err := sidecar.New(cfg, sidecar.Options{})
	if err != nil {
		log.Fatal(err)
	}
	front := httptest.NewServer(api)
	defer front.Close()
	planned := agent(front.URL + "/v1")

	fmt.Printf("prompt tokens, straight to the engine: %5d\n", plain)
	fmt.Printf("prompt tokens, through the sidecar:    %5d\n", planned)
	fmt.Printf("the sidecar left out %.0f %%: what the agent had read before\n", 100*(1-float64(planned)/float64(plain)))
}

// agent runs the program against an OpenAI-compatible server and returns the prompt tokens of its last step.
func agent(baseURL string) (promptTokens int) {
	llm, err := openai.New(openai.WithBaseURL(baseURL), openai.WithToken("unused"), openai.WithModel("sim"))
	if err != nil {
		log.Fatal(err)
	}
	history := []llms.MessageContent{ //nolint:prealloc // it grows as the agent goes on
		llms.TextParts(llms.ChatMessageTypeSystem, "You keep a lighthouse."),
		llms.TextParts(llms.ChatMessageTypeHuman, "Why is the lamp out?"),
	}
	for step, name := range []string{"lamp", "keeper", "lamp", "boat", "keeper", "lamp"} {
		id := fmt.Sprint("call-", step)
		history = append(history,
			llms.MessageContent{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{
				llms.ToolCall{ID: id, Type: "function", FunctionCall: &llms.FunctionCall{Name: "read_note", Arguments: "{}"}},
			}},
			llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{
				llms.ToolCallResponse{ToolCallID: id, Name: "read_note", Content: note(name)},
			}})
		answer, err := llm.GenerateContent(context.Background(), history)
		if err != nil {
			log.Fatal(err)
		}
		promptTokens, _ = answer.Choices[0].GenerationInfo["PromptTokens"].(int)
	}
	return promptTokens
}

// note is what the agent's tool returns.
func note(name string) string {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "Line %d of the note on the %s says what everybody at the lighthouse should know about it.\n", i+1, name)
	}
	return b.String()
}
