package eino_test

import (
	"context"
	"strings"
	"testing"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"

	"github.com/ragpilot/ragpilot/adapters/eino"
	"github.com/ragpilot/ragpilot/framework/frameworktest"
	"github.com/ragpilot/ragpilot/ragpilottest"
)

// What an agent of Eino sends through Eino's client of OpenAI's API can be cached, from step to step and from run to run. A clock in
// the instructions breaks it.
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
	if err == nil || !strings.Contains(err.Error(), "request 3 parts from request 2 at messages[0].content") ||
		!strings.Contains(err.Error(), ": clock, ") {
		t.Errorf("a clock in the instructions: %v", err)
	}
}

func runAgent(t *testing.T, rec *ragpilottest.Recorder, instructions string) {
	t.Helper()
	client, err := openai.NewChatModel(t.Context(), &openai.ChatModelConfig{BaseURL: rec.URL() + "/v1", APIKey: "none", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	read, err := utils.InferTool("read_file", "Reads a file.", func(context.Context, struct {
		Name string `json:"name"`
	},
	) (string, error) {
		return strings.Repeat("A line of the file that is read.\n", 20), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := react.NewAgent(t.Context(), &react.AgentConfig{
		ToolCallingModel: eino.ChatModel(frameworktest.Pilot(t), client).(model.ToolCallingChatModel),
		ToolsConfig:      compose.ToolsNodeConfig{Tools: []tool.BaseTool{read}},
	})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := a.Generate(t.Context(), []*schema.Message{schema.SystemMessage(instructions), schema.UserMessage("What does it do?")})
	if err != nil || answer.Content != "I have read it." {
		t.Fatalf("%v, %v", answer, err)
	}
}
