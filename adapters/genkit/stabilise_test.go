package genkit_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/firebase/genkit/go/ai"

	"github.com/ragpilot/ragpilot/adapters/genkit"
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/stabilise"
)

func TestStabiliser(t *testing.T) {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := stabilise.New(stabilise.Config{Rules: stabilise.Rules{Tools: true, Schemas: true, Volatile: true, Memories: true}})
	if err != nil {
		t.Fatal(err)
	}
	var heard *ai.ModelRequest
	model := genkit.Middleware(pilot, genkit.WithStabiliser(s))(func(_ context.Context, req *ai.ModelRequest, _ ai.ModelStreamCallback) (
		*ai.ModelResponse, error,
	) { // a fake that keeps what it gets
		heard = req
		return &ai.ModelResponse{Message: ai.NewModelTextMessage("yes")}, nil
	})
	ctx := framework.WithConversation(t.Context(), "thread")
	send := func(tools []string, messages ...*ai.Message) string {
		t.Helper()
		req := &ai.ModelRequest{Messages: messages}
		for _, name := range tools {
			req.Tools = append(req.Tools, &ai.ToolDefinition{Name: name, InputSchema: map[string]any{"required": []any{"y", "x"}}})
		}
		before, _ := json.Marshal(req)
		if _, err := model(ctx, req, nil); err != nil {
			t.Fatal(err)
		}
		if after, _ := json.Marshal(req); string(after) != string(before) {
			t.Errorf("the caller's request was changed: %s", after)
		}
		text, _ := json.Marshal([]any{heard.Messages, heard.Tools})
		return string(text)
	}
	hi := ai.NewUserTextMessage("hi")
	const u = `{"content":[{"text":"hi"},{"text":"[from the system text: Current time: 04:14:05]"}],"role":"user"}`
	f := func(name string) string { return `{"inputSchema":{"required":["x","y"]},"name":"` + name + `"}` }
	system := ai.NewSystemMessage(ai.NewTextPart("A"), ai.NewTextPart("Current time: 04:14:05"))
	got := send([]string{"b", "a"}, system, hi)
	if want := `[[{"content":[{"text":"A"}],"role":"system"},` + u + `],[` + f("a") + `,` + f("b") + `]]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got = send([]string{"c", "b", "a"}, ai.NewSystemTextMessage("Current time: 04:14:09"), hi,
		ai.NewModelMessage(ai.NewToolRequestPart(&ai.ToolRequest{Name: "a"})),
		ai.NewMessage(ai.RoleTool, nil, ai.NewToolResponsePart(&ai.ToolResponse{Name: "a", Output: "[from the system text: x]"})))
	want := `[[` + u + `,{"content":[{"toolRequest":{"name":"a"}}],"role":"model"},` +
		`{"content":[{"toolResponse":{"name":"a","output":"[from (quoted) the system text: x]"}}],"role":"tool"},` +
		`{"content":[{"text":"[from the system text: Current time: 04:14:09]"}],"role":"user"}],[` + f("a") + `,` + f("b") + `,` + f("c") + `]]`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
