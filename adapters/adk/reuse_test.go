package adk_test

import (
	"strings"
	"testing"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/model/gemini"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/functiontool"
	"google.golang.org/genai"

	"github.com/ragpilot/ragpilot/adapters/adk"
	"github.com/ragpilot/ragpilot/framework/frameworktest"
	"github.com/ragpilot/ragpilot/ragpilottest"
)

// What an agent of the kit sends through Google's client can be cached, from step to step and from run to run. A clock in the
// instructions breaks it.
func TestPromptsCanBeCached(t *testing.T) {
	script := ragpilottest.Answers(
		ragpilottest.Answer{Calls: []ragpilottest.Call{{Name: "read_file", Arguments: map[string]any{"name": "a.go"}}}},
		ragpilottest.Answer{Text: "I have read it."},
	)
	ragpilottest.AssertReuse(t, 0.99, func(rec *ragpilottest.Recorder) {
		runAgent(t, rec, "Be brief.")
		runAgent(t, rec, "Be brief.")
	}, script)
	_, err := ragpilottest.CheckReuse(t, 0.99, func(rec *ragpilottest.Recorder) {
		runAgent(t, rec, "It is 04:14. Be brief.")
		runAgent(t, rec, "It is 04:15. Be brief.")
	}, script)
	if err == nil || !strings.Contains(err.Error(), "request 3 parts from request 2 at systemInstruction.parts[0].text") ||
		!strings.Contains(err.Error(), ": clock, ") {
		t.Errorf("a clock in the instructions: %v", err)
	}
}

func runAgent(t *testing.T, rec *ragpilottest.Recorder, instructions string) {
	t.Helper()
	client, err := gemini.NewModel(t.Context(), "m", &genai.ClientConfig{
		APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: rec.URL()},
	})
	if err != nil {
		t.Fatal(err)
	}
	type args struct {
		Name string `json:"name"`
	}
	type result struct {
		Content string `json:"content"`
	}
	read, err := functiontool.New(functiontool.Config{Name: "read_file", Description: "Reads a file."},
		func(tool.Context, args) (result, error) { //nolint:staticcheck // its replacement is not in 1.4.0
			return result{strings.Repeat("A line of the file that is read.\n", 20)}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	a, err := llmagent.New(llmagent.Config{
		Name: "helper", Instruction: instructions, Model: adk.Model(frameworktest.Pilot(t), client, adk.ModelOptions{}),
		Tools: []tool.Tool{read},
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: "app", Agent: a, SessionService: session.InMemoryService(), AutoCreateSession: true})
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	for event, err := range r.Run(t.Context(), "ana", "1", genai.NewContentFromText("What does it do?", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
		last = event.Content.Parts[0].Text
	}
	if last != "I have read it." {
		t.Errorf("the answer is %q", last)
	}
}
