package genkit_test

import (
	"strings"
	"testing"

	"github.com/firebase/genkit/go/ai"
	firebase "github.com/firebase/genkit/go/genkit"
	"github.com/firebase/genkit/go/plugins/compat_oai"

	"github.com/ragpilot/ragpilot/adapters/genkit"
	"github.com/ragpilot/ragpilot/framework/frameworktest"
	"github.com/ragpilot/ragpilot/ragpilottest"
)

// What Genkit sends through its client of OpenAI's API can be cached, from step to step and from run to run. A clock in the
// instructions breaks it.
func TestPromptsCanBeCached(t *testing.T) {
	script := ragpilottest.Answers(
		ragpilottest.Answer{Calls: []ragpilottest.Call{{Name: "read_file", Arguments: map[string]any{"value": "a.go"}}}},
		ragpilottest.Answer{Text: "I have read it."},
	)
	ragpilottest.AssertReuse(t, 0.99, func(rec *ragpilottest.Recorder) {
		runTools(t, rec, "Be brief.")
		runTools(t, rec, "Be brief.")
	}, script)
	_, err := ragpilottest.CheckReuse(t, 0.99, func(rec *ragpilottest.Recorder) {
		runTools(t, rec, "It is 04:14. Be brief.")
		runTools(t, rec, "It is 04:15. Be brief.")
	}, script)
	if err == nil || !strings.Contains(err.Error(), "request 3 parts from request 2 at messages[0].content") ||
		!strings.Contains(err.Error(), ": clock, ") {
		t.Errorf("a clock in the instructions: %v", err)
	}
}

func runTools(t *testing.T, rec *ragpilottest.Recorder, instructions string) {
	t.Helper()
	client := &compat_oai.OpenAICompatible{Provider: "recorder", APIKey: "none", BaseURL: rec.URL() + "/v1"}
	g := firebase.Init(t.Context(), firebase.WithPlugins(client))
	model := client.DefineModel("recorder", "m", ai.ModelOptions{Supports: &compat_oai.BasicText})
	type file struct {
		Value string `json:"value"`
	}
	read := firebase.DefineTool(g, "read_file", "Reads a file.", func(*ai.ToolContext, file) (string, error) {
		return strings.Repeat("A line of the file that is read.\n", 20), nil
	})
	answer, err := firebase.Generate(t.Context(), g, ai.WithModel(model), ai.WithTools(read), ai.WithSystem(instructions),
		ai.WithPrompt("What does it do?"), ai.WithMiddleware(genkit.Middleware(frameworktest.Pilot(t))))
	if err != nil || answer.Text() != "I have read it." {
		t.Fatalf("%v, %v", answer, err)
	}
}
