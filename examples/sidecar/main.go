// Command sidecar runs an unchanged langchaingo program twice: straight to an engine, and with its base URL pointed at
// the sidecar in front of it. The program is an agent that reads the same notes again and again. Both servers are
// processes of the command ragpilot; the engine is its simulator: the prefix cache is real, the answers are not.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"
)

func main() {
	dir, err := os.MkdirTemp("", "sidecar")
	if err != nil {
		log.Fatal(err)
	}
	err = run(context.Background(), filepath.Join(dir, "ragpilot"))
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, ragpilot string) error {
	ctx, stop := context.WithCancel(ctx)
	var servers sync.WaitGroup
	defer servers.Wait() // or they would outlive this program
	defer stop()         // ends them
	build := exec.CommandContext(ctx, "go", "build", "-o", ragpilot, "github.com/ragpilot/ragpilot/cmd/ragpilot")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build ragpilot: %w: %s", err, out)
	}
	engine, err := start(ctx, &servers, ragpilot, "bench", "upstream", "--tokens", "8")
	if err != nil {
		return err
	}
	fresh, err := start(ctx, &servers, ragpilot, "bench", "upstream", "--tokens", "8")
	if err != nil {
		return err
	}
	sidecar, err := start(ctx, &servers, ragpilot, "serve", "--admin-addr", "", "--infer-api-url", fresh)
	if err != nil {
		return err
	}
	plain, err := agent(ctx, engine+"/v1")
	if err != nil {
		return err
	}
	planned, err := agent(ctx, sidecar+"/v1")
	if err != nil {
		return err
	}
	fmt.Printf("prompt tokens, straight to the engine: %5d\n", plain)
	fmt.Printf("prompt tokens, through the sidecar:    %5d\n", planned)
	fmt.Printf("the sidecar left out %.0f %%: what the agent had read before\n", 100*(1-float64(planned)/float64(plain)))
	return nil
}

// start starts a server, which ends with ctx, and returns its URL when it listens.
func start(ctx context.Context, servers *sync.WaitGroup, program string, args ...string) (url string, err error) {
	cmd := exec.CommandContext(ctx, program, append(args, "--listen", "127.0.0.1:0")...)
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		return "", err
	}
	servers.Go(func() { _ = in.CloseWithError(cmd.Wait()) })
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if at := address.FindString(lines.Text()); at != "" {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return "http://" + at, nil
		}
	}
	return "", fmt.Errorf("%q ended before it listened", args)
}

// agent runs the program against an OpenAI-compatible server and returns the prompt tokens of its last step.
func agent(ctx context.Context, baseURL string) (promptTokens int, err error) {
	llm, err := openai.New(openai.WithBaseURL(baseURL), openai.WithToken("unused"), openai.WithModel("sim"))
	if err != nil {
		return 0, err
	}
	history := []llms.MessageContent{
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
		answer, err := llm.GenerateContent(ctx, history)
		if err != nil {
			return 0, err
		}
		promptTokens, _ = answer.Choices[0].GenerationInfo["PromptTokens"].(int)
	}
	return promptTokens, nil
}

// note is what the agent's tool returns.
func note(name string) string {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "Line %d of the note on the %s says what everybody at the lighthouse should know about it.\n", i+1, name)
	}
	return b.String()
}
