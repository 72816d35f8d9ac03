package clients

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/openai/openai-go/v3"
)

// served lists the tools of a real MCP server in this process.
func served(r *Run, list []Tool) []*mcp.Tool {
	server := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
	for _, t := range list {
		s := new(jsonschema.Schema)
		check(json.Unmarshal(must(json.Marshal(t.Schema())), s))
		server.AddTool(&mcp.Tool{Name: t.Name, Description: t.Description, InputSchema: s},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
			})
	}
	here, there := mcp.NewInMemoryTransports()
	serving := must(server.Connect(r, there, nil))
	client := must(mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil).Connect(r, here, nil))
	defer func() {
		check(client.Close())
		check(serving.Wait())
	}()
	return must(client.ListTools(r, nil)).Tools
}

// converted makes OpenAI's tools of MCP's, which a naive program keeps in a map: order stands for the order of the map.
func converted(list []*mcp.Tool, order []int) (out []openai.ChatCompletionToolUnionParam) {
	for _, t := range Pick(list, order) {
		schema, ok := t.InputSchema.(map[string]any)
		if !ok {
			check(fmt.Errorf("the schema of %s is a %T", t.Name, t.InputSchema))
		}
		out = append(out, chatTool(Tool{Name: t.Name, Description: t.Description}, schema))
	}
	return out
}

var mcpCases = []Case{
	{Name: "mcp-tools-of-a-map", Run: func(r *Run) {
		c := newChat(r, "gpt-4.1", opsText, nil)
		for n := range 3 {
			c.params.Tools = converted(served(r, opsTools), If(r.Sick && n > 0, []int{0, 1, 4, 2, 3}, InOrder(5)))
			c.turn(n)
		}
	}, Want: []Label{{Line: 2, Against: 1, Cause: "tool-order", Path: "tools[2]"}}},
	{Name: "mcp-properties-of-a-map", Run: func(r *Run) {
		c := newChat(r, "gpt-4.1", deskText, nil)
		for n := range 2 {
			listed := served(r, deskTools)
			c.params.Tools = converted(listed, InOrder(4))
			for i, t := range listed {
				if t.Name == "find_order" {
					c.params.Tools[i] = chatTool(deskTools[0], deskTools[0].RawSchema(r.order(n, 4)))
				}
			}
			c.only(n)
		}
	}, Want: []Label{{Line: 2, Against: 1, Cause: "map-order", Path: "tools[1].function.parameters.properties"}}},
	{Name: "mcp-a-server-with-a-tool-more", Run: func(r *Run) {
		c := newChat(r, "gpt-4.1", opsText, nil)
		for n := range 2 {
			list := served(r, If(r.Sick && n == 1, opsTools, opsTools[:4]))
			c.params.Tools = converted(list, InOrder(len(list)))
			c.turn(n)
		}
	}, Want: []Label{{Line: 2, Against: 1, Cause: "tool-set", Path: "tools[1]"}}},
	{Name: "mcp-a-server-that-describes-anew", Run: func(r *Run) {
		c := newChat(r, "gpt-4.1", travelText, nil)
		for n := range 2 {
			list := []Tool{travelTools[0], travelTools[1], travelTools[2]}
			if r.Sick && n == 1 {
				list[2].Description = "Returns the forecast of a place. The source has moved; ask for at most three days."
			}
			c.params.Tools = converted(served(r, list), InOrder(3))
			c.turn(n)
		}
	}, Want: []Label{{Line: 2, Against: 1, Cause: "tool-set", Path: "tools[2]"}}},
}
