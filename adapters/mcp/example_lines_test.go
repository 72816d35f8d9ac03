package mcp_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ragpilot/ragpilot/adapters/mcp"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/sqlite"
	"github.com/ragpilot/ragpilot/retriever/bleve"
)

// The examples of docs/frameworks.md, in five and in fifteen lines beside what a program has: a folder, and a transport.

// check stands for what a program does with an error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// called calls a tool as an agent would.
func called(ctx context.Context, client *sdk.ClientSession, tool string, arguments any) string {
	result, err := client.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: arguments})
	check(err)
	return result.Content[0].(*sdk.TextContent).Text
}

// home is a folder with a document in it.
func home() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "home")
	check(err)
	check(os.WriteFile(filepath.Join(dir, "bees.md"), []byte("Bees sleep in winter."), 0o600))
	return dir, func() { check(os.RemoveAll(dir)) }
}

func connected(ctx context.Context, there sdk.Transport) *sdk.ClientSession {
	client, err := sdk.NewClient(&sdk.Implementation{Name: "example", Version: "1"}, nil).Connect(ctx, there, nil)
	check(err)
	return client
}

func Example_five() {
	ctx := context.Background()
	dir, remove := home()
	defer remove()
	transport, there := sdk.NewInMemoryTransports() // &sdk.StdioTransport{} in a program

	index, err := bleve.Open(ctx, bleve.Options{Dir: dir})
	check(err)
	server, err := mcp.New(mcp.Options{Retriever: index.Retriever(50)}) // any langchaingo retriever
	check(err)
	session, err := server.Connect(ctx, transport, nil)

	check(err)
	client := connected(ctx, there)
	fmt.Println(called(ctx, client, "search", mcp.Query{Query: "bees in winter"}))
	_ = client.Close()
	_ = session.Wait()
	fmt.Println(index.Close())
	// Output:
	// {"results":[{"id":"bees.md#0","text":"Bees sleep in winter."}]}
	// <nil>
}

func Example_fifteen() {
	ctx := context.Background()
	dir, remove := home()
	defer remove()
	file := filepath.Join(dir, "memories.db")
	transport, there := sdk.NewInMemoryTransports() // &sdk.StdioTransport{} in a program

	index, err := bleve.Open(ctx, bleve.Options{Dir: dir})
	check(err)
	defer index.Close()
	backend, err := sqlite.Open(ctx, file, sqlite.Options{})
	check(err)
	store, err := memory.New(backend, memory.Config{})
	check(err)
	defer store.Close()
	server, err := mcp.New(mcp.Options{
		Retriever: index.Retriever(50), K: 5, MaxK: 20,
		Memory: store, Scope: memory.Scope{User: "ana"}, // a client cannot choose whose memories these are
	})
	check(err)
	session, err := server.Connect(ctx, transport, nil)

	check(err)
	client := connected(ctx, there)
	called(ctx, client, "remember", mcp.Fact{Text: "Ana keeps bees."})
	fmt.Println(called(ctx, client, "search", mcp.Query{Query: "bees in winter", K: 1}))
	recalled := called(ctx, client, "recall", mcp.Query{Query: "what does Ana keep?"})
	fmt.Println(recalled[len(recalled)-27:])
	_ = client.Close()
	_ = session.Wait()
	// Output:
	// {"results":[{"id":"bees.md#0","text":"Bees sleep in winter."}]}
	// "text":"Ana keeps bees."}]}
}
