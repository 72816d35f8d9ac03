package mem0_test

import (
	"context"
	"fmt"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/mem0"
)

// A store behind Mem0's own server is used like one in the process.
func Example() {
	store, err := mem0.New("http://127.0.0.1:8888", mem0.Options{Dialect: mem0.SelfHosted, Key: "secret"})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // nobody listens there in this example
	_, err = store.Search(ctx, memory.Scope{User: "ana"}, "what does Ana keep?", 5, memory.SearchOptions{})
	fmt.Println(err)
	// Output: mem0: search: context canceled
}
