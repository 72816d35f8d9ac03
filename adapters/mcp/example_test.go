package mcp_test

import (
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ragpilot/ragpilot/adapters/mcp"
)

// A server with documents, and a client that asks it; a real one would be run with sdk.StdioTransport.
func Example() {
	server, err := mcp.New(mcp.Options{Retriever: shelf{}, K: 2})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	here, there := sdk.NewInMemoryTransports()
	serving, err := server.Connect(ctx, there, nil)
	if err != nil {
		panic(err)
	}
	client, err := sdk.NewClient(&sdk.Implementation{Name: "example", Version: "1"}, nil).Connect(ctx, here, nil)
	if err != nil {
		panic(err)
	}
	result, err := client.CallTool(ctx, &sdk.CallToolParams{Name: "search", Arguments: mcp.Query{Query: "bees"}})
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Content[0].(*sdk.TextContent).Text)
	_ = client.Close()
	_ = serving.Wait()
	// Output: {"results":[{"id":"bees.md#0","text":"Text of bees."}]}
}
